"""Messages of ROS 2 as bytes (CDR, little endian), laid out once and then filled: transforms, joint states, lines, bodies.

The names are those that viewers such as Foxglove know: `/tf` (tf2_msgs/TFMessage), `/joint_states` (sensor_msgs/JointState),
`/ropes` and `/bodies` (visualization_msgs/MarkerArray).
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

TIME_TEXT = "int32 sec\nuint32 nanosec\n"
HEADER_TEXT = "builtin_interfaces/Time stamp\nstring frame_id\n"
VECTOR_TEXT = "float64 x\nfloat64 y\nfloat64 z\n"
QUATERNION = "float64 x\nfloat64 y\nfloat64 z\nfloat64 w\n"


def _schema(top: str, **others: str) -> str:
    """A definition with those that it needs."""
    parts = [top] + [f"{'=' * 80}\nMSG: {name.replace('__', '/')}\n{text}" for name, text in others.items()]
    return "\n".join(parts)


BASE = {"std_msgs__Header": HEADER_TEXT, "builtin_interfaces__Time": TIME_TEXT}
TF = (
    "tf2_msgs/msg/TFMessage", "ros2msg",
    _schema(
        "geometry_msgs/TransformStamped[] transforms\n",
        geometry_msgs__TransformStamped="std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/Transform transform\n",
        geometry_msgs__Transform="geometry_msgs/Vector3 translation\ngeometry_msgs/Quaternion rotation\n",
        geometry_msgs__Vector3=VECTOR_TEXT, geometry_msgs__Quaternion=QUATERNION, **BASE,
    ),
)  # fmt: skip
JOINT_STATE = (
    "sensor_msgs/msg/JointState", "ros2msg",
    _schema("std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort\n", **BASE),
)  # fmt: skip
MARKER = (
    "std_msgs/Header header\nstring ns\nint32 id\nint32 type\nint32 action\ngeometry_msgs/Pose pose\n"
    "geometry_msgs/Vector3 scale\nstd_msgs/ColorRGBA color\nbuiltin_interfaces/Duration lifetime\nbool frame_locked\n"
    "geometry_msgs/Point[] points\nstd_msgs/ColorRGBA[] colors\nstring texture_resource\nsensor_msgs/CompressedImage texture\n"
    "visualization_msgs/UVCoordinate[] uv_coordinates\nstring text\nstring mesh_resource\n"
    "visualization_msgs/MeshFile mesh_file\nbool mesh_use_embedded_materials\n"
)
MARKERS = (
    "visualization_msgs/msg/MarkerArray", "ros2msg",
    _schema(
        "visualization_msgs/Marker[] markers\n", visualization_msgs__Marker=MARKER,
        geometry_msgs__Pose="geometry_msgs/Point position\ngeometry_msgs/Quaternion orientation\n",
        geometry_msgs__Point=VECTOR_TEXT, geometry_msgs__Vector3=VECTOR_TEXT, geometry_msgs__Quaternion=QUATERNION,
        std_msgs__ColorRGBA="float32 r\nfloat32 g\nfloat32 b\nfloat32 a\n", builtin_interfaces__Duration=TIME_TEXT,
        sensor_msgs__CompressedImage="std_msgs/Header header\nstring format\nuint8[] data\n",
        visualization_msgs__UVCoordinate="float32 u\nfloat32 v\n",
        visualization_msgs__MeshFile="string filename\nuint8[] data\n", **BASE,
    ),
)  # fmt: skip
MARKER_LINES, MARKER_TRIANGLES = 4, 11  # of Marker.type: LINE_STRIP, TRIANGLE_LIST


class Cdr:
    """Writes CDR; offsets count from after the four bytes that say how it is encoded."""

    def __init__(self) -> None:
        self.data = bytearray()

    def align(self, size: int) -> int:
        """Pad to a multiple of a size; where that is."""
        self.data += bytes(-len(self.data) % size)
        return len(self.data)

    def put(self, form: str, *values: Any) -> int:
        """Numbers of one kind; where they begin."""
        at = self.align(struct.calcsize(f"<{form}"))
        self.data += struct.pack(f"<{len(values)}{form}", *values)
        return at

    def text(self, value: str) -> None:
        """A string."""
        data = value.encode() + b"\0"
        self.put("I", len(data))
        self.data += data

    def header(self, frame: str) -> int:
        """A stamp (of now: 0) and a frame; where the stamp is."""
        at = self.put("I", 0, 0)
        self.text(frame)
        return at

    def reals(self, values: Any) -> int:
        """float64[]; where the first is."""
        values = np.asarray(values, float)
        self.put("I", len(values))
        at = self.align(8) if len(values) else len(self.data)
        self.data += values.astype("<f8").tobytes()
        return at


class Template:
    """A message laid out once, of which stamps and float64s are filled anew."""

    def __init__(self, cdr: Cdr, stamps: list[int], places: list[int]) -> None:
        size = len(cdr.data)
        self._bytes = np.zeros(-(-size // 8) * 8, np.uint8)
        self._bytes[:size] = np.frombuffer(bytes(cdr.data), np.uint8)
        self._size = size
        self._stamps = np.array([[s // 4, s // 4 + 1] for s in stamps], int).reshape(-1, 2)
        self._places = np.array(places, int) // 8

    def fill(self, when: int, values: np.ndarray) -> bytes:
        """The message at a time (ns) with its numbers, rounded to float32: for looking at, and half the size when compressed."""
        words, reals = self._bytes.view("<u4"), self._bytes.view("<f8")
        words[self._stamps[:, 0]], words[self._stamps[:, 1]] = divmod(when, 1_000_000_000)
        reals[self._places] = np.asarray(values, np.float32)
        return b"\0\1\0\0" + self._bytes[: self._size].tobytes()


def transforms(names: tuple[str, ...], parent: str = "world") -> Template:
    """A TFMessage of bodies: x, y, z, qx, qy, qz, qw of each."""
    cdr = Cdr()
    stamps: list[int] = []
    places: list[int] = []
    cdr.put("I", len(names))
    for name in names:
        stamps.append(cdr.header(parent))
        cdr.text(name)
        at = cdr.put("d", *[0.0] * 7)
        places += range(at, at + 56, 8)
    return Template(cdr, stamps, places)


def joint_states(names: list[str]) -> Template:
    """A JointState: all positions, then all velocities, then all efforts."""
    cdr = Cdr()
    places: list[int] = []
    stamp = cdr.header("")
    cdr.put("I", len(names))
    for name in names:
        cdr.text(name)
    for _ in range(3):
        at = cdr.reals(np.zeros(len(names)))
        places += range(at, at + 8 * len(names), 8)
    return Template(cdr, [stamp], places)


def _marker(cdr: Cdr, frame: str, space: str, number: int, kind: int, scale: Any, color: Any, locked: bool, points: Any) -> int:
    """A Marker; where its stamp is."""
    stamp = cdr.header(frame)
    cdr.text(space)
    cdr.put("i", number, kind, 0)
    cdr.put("d", 0, 0, 0, 0, 0, 0, 1)
    cdr.put("d", *scale)
    cdr.put("f", *color)
    cdr.put("i", 0, 0)
    cdr.data += bytes([int(locked)])
    cdr.put("I", len(points))
    if len(points):
        cdr.align(8)
        cdr.data += np.asarray(points, np.float32).astype("<f8").tobytes()
    cdr.put("I", 0)  # colours
    cdr.text("")
    cdr.header("")  # of the texture, which is none
    cdr.text("")
    cdr.put("I", 0)
    cdr.put("I", 0)
    cdr.text("")
    cdr.text("")
    cdr.text("")
    cdr.put("I", 0)
    cdr.data += b"\0"
    return stamp


def lines(names: tuple[str, ...], ropes: list[np.ndarray], widths: list[float], when: int) -> bytes:
    """A MarkerArray of ropes as lines, m."""
    cdr = Cdr()
    cdr.put("I", len(names))
    for k, (name, points) in enumerate(zip(names, ropes, strict=True)):
        at = _marker(cdr, "world", name, k, MARKER_LINES, (2 * widths[k], 0, 0), (0.85, 0.55, 0.2, 1), False, points)
        struct.pack_into("<II", cdr.data, at, *divmod(when, 1_000_000_000))
    return b"\0\1\0\0" + bytes(cdr.data)


def bodies(names: tuple[str, ...], meshes: list[Any], colors: list[Any]) -> bytes:
    """A MarkerArray of what bodies look like, each in its own frame; a mesh is (vertices, triangles) or None."""
    cdr = Cdr()
    shown = [(n, m, c) for n, m, c in zip(names, meshes, colors, strict=True) if m is not None]
    cdr.put("I", len(shown))
    for k, (name, (vertices, faces), color) in enumerate(shown):
        corners = np.asarray(vertices, float)[np.asarray(faces, int).ravel()]
        _marker(cdr, name, name, k, MARKER_TRIANGLES, (1, 1, 1), (*(color or (0.6, 0.65, 0.7)), 1.0), True, corners)
    return b"\0\1\0\0" + bytes(cdr.data)


def read_reals(data: bytes, places: np.ndarray) -> np.ndarray:
    """float64s of a message by where they are in its template."""
    size = -(-(len(data) - 4) // 8) * 8
    return np.asarray(np.frombuffer(data[4:].ljust(size, b"\0"), "<f8")[places])


def read_lines(data: bytes) -> list[np.ndarray]:
    """(points, 3) of each rope of a message of `lines`."""
    return [points for _, _, points in read_markers(data)]


def read_markers(data: bytes) -> list[tuple[str, tuple[float, ...], np.ndarray]]:
    """Of each marker its name, its first size and colour (4 numbers), and its points (n, 3)."""
    body, at = data[4:], 4
    out: list[tuple[str, tuple[float, ...], np.ndarray]] = []

    def text(at: int) -> int:
        at += -at % 4
        return at + 4 + int(struct.unpack_from("<I", body, at)[0])

    (count,) = struct.unpack_from("<I", body, 0)
    for _ in range(count):
        at += -at % 4
        at = text(at + 8)
        at += -at % 4
        name = body[at + 4 : text(at) - 1].decode()
        at = text(at)
        at += -at % 4 + 12
        at += -at % 8 + 80  # pose and scale
        looks = struct.unpack_from("<d", body, at - 24) + struct.unpack_from("<3f", body, at)
        at += 16 + 8 + 1
        at += -at % 4
        (n,) = struct.unpack_from("<I", body, at)
        at += 4
        if n:
            at += -at % 8
        out.append((name, looks, np.frombuffer(body, "<f8", 3 * n, at).reshape(n, 3)))
        at += 24 * n + 4
        at = text(at)
        at += -at % 4 + 8
        at = text(text(at))
        at += -at % 4 + 4
        at += 4
        at = text(text(text(at)))
        at += -at % 4 + 4
        at += 1
    return out
