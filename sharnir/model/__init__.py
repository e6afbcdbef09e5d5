"""What a scene becomes: arrays of bodies, joints and axes, the state, and the kinematics of joints."""
