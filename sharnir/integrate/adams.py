"""Variable-step, variable-order Adams in modified divided differences, PECE with local extrapolation (orders 1 … 12).

Shampine, Gordon: Computer Solution of Ordinary Differential Equations. With ψ_i the time over the last i steps, the next one
included, and φ_i the modified differences of f, a step h of order k predicts and corrects the derivative as polynomials in θ:

    predictor  Σ_{i≤k} c_i(θ) φ*_i,     corrector  the same + c_{k+1}(θ) (f(p) - Σ φ*_i),     φ*_i = β_i φ_i,
    c_1 = 1,   c_2 = θ,   c_i = c_{i-1} (θ h + ψ_{i-2} of the last step) / ψ_{i-1},           c_i(1) = 1.

Every coefficient of c_i in powers of θ is positive, so that nothing cancels: g_i = ∫ c_i and the interpolant come from them
directly. Below, i counts from 0, and φ_i is K[i].
"""

import warp as wp

from sharnir.core.types import real


@wp.struct
class Adams:
    """What the method keeps of the past and of the step being tried, [item, world] or [item, row, world]."""

    most: wp.int32  # highest order
    gamma: wp.array(dtype=real)  # [i] |γ*_{i+1}|
    order: wp.array(dtype=wp.int32)
    wanted: wp.array(dtype=wp.int32)  # order that the errors of the trial ask for
    same: wp.array(dtype=wp.int32)  # steps of this size in a row, this one included
    climbing: wp.array(dtype=wp.int32)  # 1 in the start, where order and step rise with every step
    fails: wp.array(dtype=wp.int32)  # rejected trials of this step
    last: wp.array(dtype=real)  # size of the last step
    error: wp.array2d(dtype=real)  # [2, world] error estimates at this order and the one below
    psi: wp.array2d(dtype=real)
    psi_next: wp.array2d(dtype=real)
    sigma: wp.array2d(dtype=real)
    g: wp.array2d(dtype=real)
    c: wp.array3d(dtype=real)  # [i, power, world]
    star: wp.array3d(dtype=real)  # φ*, and behind them what the corrector adds


@wp.func
def adams_begin(
    a: Adams, w: int, rows: int, rtol: real, atol: real, y: wp.array2d(dtype=real), K: wp.array3d(dtype=real)
) -> real:
    """Start afresh at order 1 from K[0] = f(y); returns a first step."""
    a.order[w] = 1
    a.climbing[w] = 1
    a.same[w] = 0
    a.fails[w] = 0
    a.last[w] = real(0.0)
    size = real(0.0)
    for r in range(rows):
        f = K[0, r, w]
        K[1, r, w] = real(0.0)
        e = f / (atol + rtol * wp.abs(y[r, w]))
        size = size + e * e
    size = wp.sqrt(size / real(rows))
    if size < real(1.0e-6):  # at rest: as if f were this small, not zero
        size = real(1.0e-6)
    return real(0.25) / wp.sqrt(size)


@wp.func
def adams_predict(
    a: Adams, w: int, rows: int, h: real, y: wp.array2d(dtype=real), ahead: wp.array2d(dtype=real), K: wp.array3d(dtype=real)
):
    """Coefficients of a step h, φ*, and the predicted state in `ahead`."""
    k = a.order[w]
    if h != a.last[w]:
        a.same[w] = 0
    a.same[w] = a.same[w] + 1
    a.sigma[0, w] = real(1.0)
    for i in range(k):
        total = h
        if i > 0:
            total = a.psi[i - 1, w] + h
        a.psi_next[i, w] = total
        a.sigma[i + 1, w] = a.sigma[i, w] * real(i + 1) * h / total
    for i in range(k + 1):
        rise = real(1.0)  # the factor from c_{i-1} to c_i: still + rise θ
        still = real(0.0)
        if i > 1:
            rise = h / a.psi_next[i - 1, w]
            still = a.psi[i - 2, w] / a.psi_next[i - 1, w]
        whole = real(0.0)
        for d in range(i + 1):
            value = real(1.0)
            if i > 0:
                value = real(0.0)
                if d > 0:
                    value = rise * a.c[i - 1, d - 1, w]
                if d < i:
                    value = value + still * a.c[i - 1, d, w]
            a.c[i, d, w] = value
            whole = whole + value / real(d + 1)
        a.g[i, w] = whole
    beta = real(1.0)
    for i in range(k):
        if i > 0:
            beta = beta * a.psi_next[i - 1, w] / a.psi[i - 1, w]
        for r in range(rows):
            a.star[i, r, w] = beta * K[i, r, w]
    for r in range(rows):
        add = real(0.0)
        for i in range(k):
            add = add + a.g[k - 1 - i, w] * a.star[k - 1 - i, r, w]
        ahead[r, w] = y[r, w] + h * add


@wp.func
def adams_judge(
    a: Adams, w: int, rows: int, h: real, rtol: real, atol: real,
    y: wp.array2d(dtype=real), ahead: wp.array2d(dtype=real), f: wp.array2d(dtype=real),
) -> real:  # fmt: skip
    """Correct `ahead` by f there; returns the error in units of the tolerance."""
    k = a.order[w]
    e0 = real(0.0)
    e1 = real(0.0)
    e2 = real(0.0)
    for r in range(rows):
        d = f[r, w]
        for i in range(k):
            d = d - a.star[i, r, w]
        a.star[k, r, w] = d
        scale = real(1.0) / (atol + rtol * wp.max(wp.abs(y[r, w]), wp.abs(ahead[r, w])))
        e0 = e0 + d * d * scale * scale
        if k > 1:
            d1 = (d + a.star[k - 1, r, w]) * scale
            e1 = e1 + d1 * d1
        if k > 2:
            d2 = (d + a.star[k - 1, r, w] + a.star[k - 2, r, w]) * scale
            e2 = e2 + d2 * d2
        ahead[r, w] = ahead[r, w] + h * a.g[k, w] * d
    size = h / wp.sqrt(real(rows))
    here = size * a.sigma[k, w] * a.gamma[k - 1] * wp.sqrt(e0)
    below = real(0.0)
    a.wanted[w] = k
    if k > 1:
        below = size * a.sigma[k - 1, w] * a.gamma[k - 2] * wp.sqrt(e1)
    if k == 2 and below <= real(0.5) * here:
        a.wanted[w] = 1
    if k > 2:
        lowest = size * a.sigma[k - 2, w] * a.gamma[k - 3] * wp.sqrt(e2)
        if wp.max(below, lowest) <= here:
            a.wanted[w] = k - 1
    a.error[0, w] = here
    a.error[1, w] = below
    return size * wp.sqrt(e0) * (a.g[k - 1, w] - a.g[k, w])


@wp.func
def adams_reject(a: Adams, w: int, h: real) -> real:
    """A smaller step after a trial that failed; from the third failure on at order 1."""
    a.climbing[w] = 0
    a.fails[w] = a.fails[w] + 1
    a.order[w] = a.wanted[w]
    factor = real(0.5)
    if a.fails[w] >= 3:
        a.order[w] = 1
    if a.fails[w] > 3 and real(2.0) < a.error[0, w]:
        factor = wp.sqrt(real(0.5) / a.error[0, w])
    return h * factor


@wp.func
def adams_accept(
    a: Adams, w: int, rows: int, h: real, fixed: real, rtol: real, atol: real,
    y: wp.array2d(dtype=real), ahead: wp.array2d(dtype=real), f: wp.array2d(dtype=real), K: wp.array3d(dtype=real),
) -> real:  # fmt: skip
    """Take over the differences with f at the corrected state `ahead`, choose the next order; returns the next step."""
    k = a.order[w]
    above = real(0.0)
    for r in range(rows):
        d = f[r, w]
        for i in range(k):
            d = d - a.star[i, r, w]
        rise = d - K[k, r, w]
        K[k + 1, r, w] = rise
        K[k, r, w] = d
        for i in range(k):
            d = d + a.star[k - 1 - i, r, w]
            K[k - 1 - i, r, w] = d
        e = rise / (atol + rtol * wp.max(wp.abs(y[r, w]), wp.abs(ahead[r, w])))
        above = above + e * e
    for i in range(k):
        a.psi[i, w] = a.psi_next[i, w]
    a.last[w] = h
    a.fails[w] = 0
    if fixed > real(0.0):
        a.order[w] = wp.min(k + 1, a.most)
        return wp.min(real(2.0) * h, fixed)
    above = h / wp.sqrt(real(rows)) * a.gamma[k] * wp.sqrt(above)
    here = a.error[0, w]
    below = a.error[1, w]
    if a.wanted[w] < k or k == a.most:
        a.climbing[w] = 0
    if a.climbing[w] == 1:
        a.order[w] = k + 1
        return real(2.0) * h
    error = here
    if a.wanted[w] < k:
        a.order[w] = k - 1
        error = below
    elif a.same[w] > k:  # the estimate of the order above holds after that many equal steps
        if k > 1 and below <= wp.min(here, above):
            a.order[w] = k - 1
            error = below
        elif k < a.most and ((k > 1 and above < here) or (k == 1 and above < real(0.5) * here)):
            a.order[w] = k + 1
            error = above
    powers = real(a.order[w] + 1)
    if error * wp.pow(real(2.0), powers) <= real(0.5):
        return real(2.0) * h
    if error <= real(0.5):
        return h
    return h * wp.clamp(wp.pow(real(0.5) / error, real(1.0) / powers), real(0.5), real(0.9))


@wp.func
def adams_dense(a: Adams, w: int, rows: int, degree: int, h: real, C: wp.array3d(dtype=real)):
    """The corrector's polynomial: C[d + 1] = h / (d + 1) Σ_i c_i[d] φ*_i."""
    k = a.order[w]
    for d in range(degree):
        scale = h / real(d + 1)
        for r in range(rows):
            add = real(0.0)
            for i in range(d, k + 1):
                add = add + a.c[i, d, w] * a.star[i, r, w]
            C[d + 1, r, w] = scale * add
