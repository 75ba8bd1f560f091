#!/usr/bin/env python3
"""The polynomials of kernels/math_f32.h and kernels/math_wide.h: minimax fits by Remez's
exchange (Cheney, Introduction to Approximation Theory, 1966, chapter 3). Needs mpmath.

	tools/math_fit.py [NAME...]

prints for each fit its coefficients, lowest power first, and its largest relative error before
they were rounded."""
import struct
import sys

from mpmath import mp, mpf, asin, atan, cos, exp, expm1, log, log1p, lu_solve, matrix, pi, sin, sinh, sqrt

mp.dps = 50


def solve(f, weight, x, degree):
    """The polynomial, and the error e, with (p(x) - f(x)) weight(x) = e, -e, e, ... at all x."""
    n = degree + 2
    a, b = matrix(n, n), matrix(n, 1)
    for i in range(n):
        for j in range(degree + 1):
            a[i, j] = x[i] ** j
        a[i, n - 1] = (-1) ** i / weight(x[i])
        b[i] = f(x[i])
    c = lu_solve(a, b)
    return [c[j] for j in range(degree + 1)], c[n - 1]


def remez(f, weight, low, high, degree, points=700):
    """The polynomial p of least max |(p(x) - f(x)) weight(x)| over [low, high], and that."""
    n = degree + 2
    low, high = mpf(low) or mpf(high) / 10**4, mpf(high)  # weights may be 0 at 0
    x = [(low + high) / 2 - (high - low) / 2 * cos(pi * (i + 0.3) / n) for i in range(n)]
    grid = [(low + high) / 2 - (high - low) / 2 * cos(pi * i / points) for i in range(points + 1)]
    known = [(f(g), weight(g)) for g in grid]
    worst = 0
    for _ in range(30):
        c, e = solve(f, weight, x, degree)
        error = []
        for g, (v, w) in zip(grid, known):
            p = mpf(0)
            for k in reversed(c):
                p = p * g + k
            error.append((p - v) * w)
        worst = max(abs(d) for d in error)
        if worst <= abs(e) * mpf("1.001"):
            break
        # the extreme of each stretch of one sign; of those the n in a row with the largest least
        peaks = []
        for i, d in enumerate(error):
            if peaks and (error[peaks[-1]] > 0) == (d > 0):
                if abs(d) > abs(error[peaks[-1]]):
                    peaks[-1] = i
            else:
                peaks.append(i)
        while len(peaks) > n:
            peaks.pop(0 if abs(error[peaks[0]]) < abs(error[peaks[-1]]) else -1)
        if len(peaks) < n:
            break
        x = [grid[i] for i in peaks]
    return c, worst


def series(f, small):
    """f, which divides by its argument, through its value near 0."""
    return lambda t: f(t) if abs(t) > mpf(10) ** -12 else small


# name: (function, weight, low, high, degree, digits). The weight makes the error relative to the
# whole of what the polynomial is a part of.
FITS = {
    # (log(1 + f) - f + f^2 / 2) / f^3
    "log_f32": (series(lambda f: (log1p(f) - f + f * f / 2) / f**3, mpf(1) / 3),
                series(lambda f: f**3 / log1p(f), mpf(0)), sqrt(mpf(0.5)) - 1, sqrt(mpf(2)) - 1, 8, "f"),
    # log((1 + s) / (1 - s)) = 2 s + s^3 p(s^2)
    "log_wide": (series(lambda t: (log((1 + sqrt(t)) / (1 - sqrt(t))) - 2 * sqrt(t)) / sqrt(t)**3, mpf(2) / 3),
                 lambda t: t / 2, 0, (3 - 2 * sqrt(mpf(2)))**2, 4, "d"),
    # e^r = 1 + r + r^2 p(r)
    "exp_wide": (series(lambda r: (expm1(r) - r) / r**2, mpf(1) / 2), lambda r: r**2 / exp(r),
                 -log(mpf(2)) / 2, log(mpf(2)) / 2, 5, "d"),
    # sin r = r + r^3 p(r^2), cos r = 1 - r^2 / 2 + r^4 p(r^2)
    "sin_f32": (series(lambda t: (sin(sqrt(t)) / sqrt(t) - 1) / t, -mpf(1) / 6),
                series(lambda t: t * sqrt(t) / sin(sqrt(t)), mpf(0)), 0, (pi / 4)**2, 2, "f"),
    "cos_f32": (series(lambda t: (cos(sqrt(t)) - 1 + t / 2) / t**2, mpf(1) / 24),
                lambda t: t**2 / cos(sqrt(t)), 0, (pi / 4)**2, 2, "f"),
    # the same in double: sin r = r + r^3 p(r^2), cos r = 1 + r^2 p(r^2)
    "sin_wide": (series(lambda t: (sin(sqrt(t)) / sqrt(t) - 1) / t, -mpf(1) / 6),
                 series(lambda t: t * sqrt(t) / sin(sqrt(t)), mpf(0)), 0, (pi / 4)**2, 3, "d"),
    "cos_wide": (series(lambda t: (cos(sqrt(t)) - 1) / t, -mpf(1) / 2), lambda t: t / cos(sqrt(t)), 0, (pi / 4)**2,
                 3, "d"),
    # asin x = x + x^3 p(x^2)
    "asin_wide": (series(lambda t: (asin(sqrt(t)) / sqrt(t) - 1) / t, mpf(1) / 6),
                  series(lambda t: t * sqrt(t) / asin(sqrt(t)), mpf(0)), 0, 0.25, 6, "d"),
    # atan x = x + x^3 p(x^2), |x| <= tan(pi / 8)
    "atan_wide": (series(lambda t: (atan(sqrt(t)) / sqrt(t) - 1) / t, -mpf(1) / 3),
                  series(lambda t: t * sqrt(t) / atan(sqrt(t)), mpf(0)), 0, (sqrt(mpf(2)) - 1)**2, 5, "d"),
    # sinh x = x + x^3 p(x^2), |x| <= 1
    "sinh_wide": (series(lambda t: (sinh(sqrt(t)) / sqrt(t) - 1) / t, mpf(1) / 6),
                  series(lambda t: t * sqrt(t) / sinh(sqrt(t)), mpf(0)), 0, 1, 3, "d"),
}


def main():
    for name in sys.argv[1:] or FITS:
        f, weight, low, high, degree, kind = FITS[name]
        c, worst = remez(f, weight, low, high, degree)
        print(f"{name}: error 2^{float(log(worst, 2)):.1f}")
        for k in c:
            value = float(k)
            if kind == "f":
                value = struct.unpack("f", struct.pack("f", value))[0]
                print(f"\t{value:.9g}")
            else:
                print(f"\t{value!r}")


main()
