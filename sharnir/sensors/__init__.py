"""What real sensors would measure, read off a running simulation: frames, IMU, force and torque, distances, lidar, depth images.

tool = sh.sensors.Frame(sim, "wrist", position=(0, 0, 0.1))
imu = sh.sensors.IMU(sim, "tool", noise=sh.sensors.Noise(sigma=(0.02, 0.001), rate=200))  # a frame that the scene has
sim.step(); imu.update(); imu.acceleration, imu.rate, tool.position

scene.add_sensor("front", "lidar", "car", position=(1, 0, 0.5), count=180)  # which the simulation updates itself
sim.sensor("front").ranges
"""

from typing import TYPE_CHECKING

from sharnir.core.misspellings import names_of
from sharnir.sensors.camera import Camera
from sharnir.sensors.fans import DepthCamera, Lidar
from sharnir.sensors.frames import Frame, angle, cardan, distance, swing_twist, tension
from sharnir.sensors.noise import Noise
from sharnir.sensors.sensor import IMU, Distance, ForceTorque, Sensor

__all__ = [
    "IMU", "Camera", "DepthCamera", "Distance", "ForceTorque", "Frame", "Lidar", "Noise", "Sensor", "angle", "cardan",
    "distance", "swing_twist", "tension",
]  # fmt: skip

if not TYPE_CHECKING:  # or every word would be right
    __getattr__ = names_of("sharnir.sensors", __all__)
