"""stub"""
from sharnir.sensors.frames import *
