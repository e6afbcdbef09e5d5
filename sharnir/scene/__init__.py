"""What a user describes: bodies, joints, ropes, wheels, inputs; and how a model is made of it."""
