"""Motions of tensors: PyTorch's autograd goes back through the steps of a simulation (`sh.rollout`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from sharnir.core.extras import need

torch: Any = need("torch")


class Steps(torch.autograd.Function):  # type: ignore[misc]
    """Coordinates and speeds of a motion that was made, as a function of its controls and parameters."""

    @staticmethod
    def forward(ctx: Any, made: Any, controls: Any, *values: Any) -> Any:
        """What was made."""
        ctx.made, ctx.like = made, (controls, *values)
        first = next(x for x in ctx.like if isinstance(x, torch.Tensor))
        how = {"dtype": first.dtype if first.is_floating_point() else torch.float64, "device": first.device}
        return torch.as_tensor(made.q, **how), torch.as_tensor(made.v, **how)

    @staticmethod
    def backward(ctx: Any, *slopes: Any) -> Any:
        """Slopes by controls and parameters from those by coordinates and speeds."""
        found = ctx.made.gradient_then(*(x.detach().cpu().numpy().astype(float) for x in slopes))
        each: list[Any] = [found.controls, *found.parameters.values()]
        out: list[Any] = [None]
        for like, slope in zip(ctx.like, each, strict=True):
            if isinstance(like, torch.Tensor):  # what was given for all worlds has the sum of their slopes
                slope = np.asarray(slope)
                slope = slope.sum(0) if slope.ndim > like.ndim else slope
                out.append(torch.as_tensor(slope, dtype=like.dtype, device=like.device).reshape(like.shape))
            else:
                out.append(None)
        return tuple(out)


def attach(made: Any, controls: Any, values: list[Any]) -> None:
    """Give a motion tensors instead of arrays, which know where they come from."""
    q, v = Steps.apply(made, controls, *values)
    made.q, made.v = q, v
