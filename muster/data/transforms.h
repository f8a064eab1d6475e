// The built-in operations of `map`. Each works on one column. Bad arguments (no mean, a deviation of 0) and
// values that an operation cannot take (HWC2CHW of a vector) are reported by Dataset::map.
//
// Arithmetic: every operation computes in float32, each step rounded on its own, in the order written here.
// However the pipeline fuses a chain, its bits are those of the operations applied one after the other.
// Operations on the geometry of images: vision.h.
#pragma once

#include "muster/data/operation.h"

namespace muster::data {

// float32(value) * scale + shift, for values of any dtype and shape.
OperationPtr rescale(float scale, float shift);

struct NormalizeOptions {
  std::vector<float> mean;  // one number a channel, or one for all
  std::vector<float> std;
  bool is_hwc = true;  // channels are the last axis, or else the first
};
// (float32(value) - mean) / std per channel, for images (H, W, C), (C, H, W) or (H, W).
OperationPtr normalize(NormalizeOptions options);

// (H, W, C) to (C, H, W); (H, W) stays.
OperationPtr hwc2chw();

// Each element as C++ converts it; a float outside the range of an integer dtype becomes its nearest bound.
OperationPtr type_cast(DType dtype);

// float32(value) * (1 / 255), then (H, W, C) to (C, H, W), then as `dtype`; (H, W) becomes (1, H, W).
OperationPtr to_tensor(DType dtype = DType::float32);

// A label (an integer of 0 to num_classes - 1) as num_classes numbers: 1 at its place, else 0, in the label's
// dtype. With smoothing the 1 loses smoothing_rate, which all classes share, in float64.
OperationPtr one_hot(std::int64_t num_classes, double smoothing_rate = 0);

}  // namespace muster::data
