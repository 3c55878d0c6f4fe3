"""Writes golden.txt: the 8-bit floats of ml_dtypes, bit for bit.

    pip install ml_dtypes numpy
    python golden.py > golden.txt

ml_dtypes (https://github.com/jax-ml/ml_dtypes) is what JAX and TensorFlow convert with; its rounding
is to nearest, ties to even.

All numbers are hexadecimal bits, of f32 or of 8-bit floats; of an 8-bit float E4M3 (`float8_e4m3fn`)
comes first, then E5M2 (`float8_e5m2`).

    value CODE E4M3 E5M2            what a code stands for, as f32
    code  X:E4M3:E5M2 ..            what a number becomes
    row   SCALE CODES SCALE CODES X ..   what a row becomes with the scale of docs/wire.md
"""

import ml_dtypes
import numpy as np

FORMATS = [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
LARGEST = [np.float32(448), np.float32(57344)]


def bits(values):
    return np.asarray(values, np.float32).view(np.uint32)


def codes(values, format):
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float32).astype(format).view(np.uint8)


def decoded(format):
    return np.arange(256, dtype=np.uint8).view(format).astype(np.float32)


def inputs():
    zero, infinity = np.float32(0), np.float32(np.inf)
    below = lambda x: np.nextafter(x, zero)
    above = lambda x: np.nextafter(x, infinity)
    all = [0.0, -0.0, np.inf, -np.inf, np.nan, np.float32(2**-149), -np.float32(2**-149)]
    all += [np.finfo(np.float32).tiny, np.finfo(np.float32).max, 1e6, -1e6, 3e38]
    for format, largest in zip(FORMATS, LARGEST):
        finite = decoded(format)[:128]
        finite = finite[np.isfinite(finite)]
        ties = (finite[1:] + finite[:-1]) / 2
        # Half of the step above the largest: from there on other implementations overflow.
        edge = largest + (finite[-1] - finite[-2]) / 2
        for number, x in enumerate([*ties, finite[1], largest, edge]):
            sign = np.float32(-1 if number % 2 else 1)
            all += [sign * x, sign * below(x), sign * above(x)]
    random = np.random.default_rng(8)
    scales = np.exp2(random.uniform(-20, 18, 600))
    all += list((random.standard_normal(600) * scales).astype(np.float32))
    return np.array(all, np.float32)


def rows():
    random = np.random.default_rng(16)
    for exponent in [0, 0, 3, 10, 30, 100, 126, -3, -10, -30, -100, -125, -130, -140]:
        spread = np.exp2(random.uniform(-12, 0, 8))
        row = random.standard_normal(8) * spread
        yield (row / np.abs(row).max() * 2.0**exponent).astype(np.float32)
    yield np.zeros(8, np.float32)
    yield np.full(8, -0.1, np.float32)


def main():
    for code, values in enumerate(zip(*[bits(decoded(format)) for format in FORMATS])):
        print(f"value {code:02x}", *[f"{value:08x}" for value in values])
    all = inputs()
    coded = zip(bits(all), *[codes(all, format) for format in FORMATS])
    words = [":".join([f"{x:08x}", f"{e4m3:02x}", f"{e5m2:02x}"]) for x, e4m3, e5m2 in coded]
    for at in range(0, len(words), 8):
        print("code", *words[at : at + 8])
    for row in rows():
        said = []
        for format, largest in zip(FORMATS, LARGEST):
            scale = np.maximum(np.abs(row).max() / largest, np.finfo(np.float32).tiny)
            inverse = np.float32(1) / scale
            said += [f"{bits(scale):08x}", bytes(codes(row * inverse, format)).hex()]
        print("row", *said, *[f"{x:08x}" for x in bits(row)])


main()
