"""USD export of a recording: bodies as meshes, ropes as curves, in motion, for the tools of film and robotics."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from sharnir.core.extras import need
from sharnir.errors import SimulationError

USD_SUFFIXES = (".usda", ".usdc", ".usd", ".usdz")


def prim_names(names: list[str]) -> list[str]:
    """Names that USD takes, each once: letters, digits and _, not beginning with a digit."""
    out: list[str] = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
        plain = plain if plain and not plain[0].isdigit() else f"_{plain}"
        number, free = 1, plain
        while free in out:
            number, free = number + 1, f"{plain}_{number + 1}"
        out.append(free)
    return out


def write(
    path: str | Path, times: np.ndarray, bodies: dict[str, tuple[Any, Any, Any]], looks: dict[str, tuple[Any, Any, Any]],
    ropes: dict[str, tuple[Any, float]],
) -> Path:  # fmt: skip
    """Write a stage, z up, m.

    Args:
        times: (n,) s. bodies: name → positions (n, 3), rotations (n, 4), …; looks: name → vertices, triangles, colour.
        ropes: name → n arrays (points, 3), and the radius.
    """
    file = Path(path)
    if file.suffix not in USD_SUFFIXES:
        raise SimulationError(f"to_usd: {file}: the name of a USD file ends with one of {', '.join(USD_SUFFIXES)}")
    need("pxr", "io")
    from pxr import Gf, Usd, UsdGeom, Vt

    file.parent.mkdir(parents=True, exist_ok=True)
    rate = 1 / float(np.median(np.diff(times))) if len(times) > 1 else 60.0
    target = file if file.suffix != ".usdz" else file.with_suffix(".usdc")
    stage = Usd.Stage.CreateNew(str(target)) if not target.exists() else _anew(Usd, target)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetTimeCodesPerSecond(rate)
    stage.SetStartTimeCode(0)
    stage.SetEndTimeCode(max(0.0, float(times[-1] * rate)) if len(times) else 0.0)
    world = UsdGeom.Xform.Define(stage, "/World")
    stage.SetDefaultPrim(world.GetPrim())
    paths = prim_names([*bodies, *ropes])
    for prim, (name, (position, rotation, _)) in zip(paths, bodies.items(), strict=False):
        place = UsdGeom.Xform.Define(stage, f"/World/{prim}")
        place.GetPrim().SetDisplayName(name)
        move, turn = place.AddTranslateOp(), place.AddOrientOp()
        for t, x, q in zip(times, position, rotation, strict=True):
            move.Set(Gf.Vec3d(*map(float, x)), t * rate)
            turn.Set(Gf.Quatf(float(q[3]), *map(float, q[:3])), t * rate)
        if name in looks:
            vertices, faces, color = looks[name]
            mesh = UsdGeom.Mesh.Define(stage, f"/World/{prim}/shape")
            mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(np.asarray(vertices, np.float32)))
            mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(np.asarray(faces, np.int32).ravel()))
            mesh.CreateFaceVertexCountsAttr([3] * len(faces))
            mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
            mesh.CreateDisplayColorAttr([Gf.Vec3f(*map(float, color))])
    for prim, (shapes, radius) in zip(paths[len(bodies) :], ropes.values(), strict=True):
        curve = UsdGeom.BasisCurves.Define(stage, f"/World/{prim}")
        curve.CreateTypeAttr(UsdGeom.Tokens.linear)
        curve.CreateWidthsAttr([2 * radius])
        curve.SetWidthsInterpolation(UsdGeom.Tokens.constant)
        points, counts = curve.CreatePointsAttr(), curve.CreateCurveVertexCountsAttr()
        for t, shape in zip(times, shapes, strict=True):
            points.Set(Vt.Vec3fArray.FromNumpy(np.asarray(shape, np.float32)), t * rate)
            counts.Set([len(shape)], t * rate)
    stage.GetRootLayer().Save()
    if file.suffix == ".usdz":
        from pxr import UsdUtils

        UsdUtils.CreateNewUsdzPackage(str(target), str(file))
        target.unlink()
    return file


def _anew(usd: Any, path: Path) -> Any:
    """An empty stage in the place of an older file."""
    from pxr import Sdf

    layer = Sdf.Layer.FindOrOpen(str(path))
    if layer is None:
        raise SimulationError(f"to_usd: {path}: is there already, and no USD file")
    layer.Clear()
    return usd.Stage.Open(layer)
