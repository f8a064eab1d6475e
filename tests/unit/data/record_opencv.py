#!/usr/bin/env python3
"""Records what OpenCV makes of a small pattern at other sizes: prints opencv_golden.h.

python3 -m venv cv
cv/bin/pip install opencv-python-headless
cv/bin/python record_opencv.py > opencv_golden.h
"""

import cv2
import numpy

CASES = [  # (height, width) to (height, width), channels
    ((5, 7), (11, 13), 3),
    ((8, 8), (16, 24), 1),
    ((16, 12), (7, 5), 3),
    ((12, 12), (4, 6), 1),
    ((6, 10), (9, 4), 3),
    ((1, 3), (4, 4), 1),
]
MODES = {
    "nearest": cv2.INTER_NEAREST,
    "linear": cv2.INTER_LINEAR,
    "cubic": cv2.INTER_CUBIC,
    "area": cv2.INTER_AREA,
}


def pattern(size, channels):
    """The same as pattern() in vision_test.cpp."""
    y, x, c = numpy.indices((*size, channels))
    return ((y * 37 + x * 91 + c * 53 + y * x % 17 * 11) % 256).astype(numpy.uint8)


def main():
    print(f"// Recorded by record_opencv.py with OpenCV {cv2.__version__}.")
    print("#pragma once\n\n#include <cstdint>\n#include <vector>\n")
    print('#include "muster/data/vision.h"\n\nnamespace muster::data::testing {\n')
    print("struct OpenCvCase {\n  Size from;\n  Size to;\n  std::int64_t channels;")
    print("  Interpolation interpolation;\n  std::vector<std::uint8_t> values;\n};\n")
    print("// clang-format off\ninline const std::vector<OpenCvCase> opencv_cases = {")
    for before, after, channels in CASES:
        for name, mode in MODES.items():
            made = cv2.resize(pattern(before, channels), after[::-1], interpolation=mode)
            values = ",".join(map(str, made.reshape(-1).tolist()))
            sizes = f"{{{before[0]}, {before[1]}}}, {{{after[0]}, {after[1]}}}, {channels}"
            print(f"    {{{sizes}, Interpolation::{name},\n     {{{values}}}}},")
    print("};\n// clang-format on\n\n}  // namespace muster::data::testing")


if __name__ == "__main__":
    main()
