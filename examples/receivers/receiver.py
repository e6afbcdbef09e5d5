"""Receives the frames of a stream over UDP, with nothing but Python: prints time, place of the first body, and channels.

python receiver.py 5005
"""

import json
import socket
import struct
import sys

HEADER = struct.Struct("<4sHHQddIIIIIIII")


def receive(port, host="127.0.0.1"):
    """Frames as they come: time (s), bodies (name → x, y, z, qx, qy, qz, qw), points of ropes, values of channels."""
    sock, names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), {}
    sock.bind((host, port))
    while True:
        data = sock.recv(65535)
        if data[:1] == b"{":
            layout = json.loads(data)
            names = {layout["layout"]: layout}
        elif data[:4] == b"SHFR":
            _, _, head, _, time, _, n, r, m, c, _, check, _, _ = HEADER.unpack_from(data)
            poses = [struct.unpack_from("<7f", data, head + 28 * k) for k in range(n)]
            points = [struct.unpack_from("<3f", data, head + 28 * n + 4 * r + 12 * k) for k in range(m)]
            values = struct.unpack_from(f"<{c}f", data, head + 28 * n + 4 * r + 12 * m)
            bodies = names[check]["bodies"] if check in names else range(n)
            yield time, dict(zip(bodies, poses, strict=True)), points, values


if __name__ == "__main__":
    for time, bodies, _, values in receive(int(sys.argv[1])):
        print(f"{time:8.3f} s", *next(iter(bodies.items()), ()), *values)
