// Private to graph: rules of rows for dividing an op over a mesh.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "muster/graph/kernel.h"

namespace muster::graph {

// Which dimensions of an op's inputs and outputs are the same, by a label for each. What has a label may be
// cut, in all tensors alike; what has none is whole. A label that inputs alone have is one that the op sums
// over: each rank makes a part of the sum, and `joins` says how the parts become the whole.
class DimensionMap {
 public:
  static constexpr int whole = -1;
  using Labels = std::vector<int>;  // by dimension

  DimensionMap(std::span<const TensorType> inputs, std::span<const TensorType> outputs,
               const Attributes& attributes);

  std::span<const TensorType> inputs;
  std::span<const TensorType> outputs;
  const Attributes& attributes;
  std::vector<Labels> of_inputs;   // nothing has a label at first
  std::vector<Labels> of_outputs;  // likewise
  Reduction joins = Reduction::sum;
  std::vector<std::size_t> copies = {};  // outputs that are no sums, though they lack labels
  std::string_view shape = {};           // the attribute that is the shape of output 0; empty: none is
  std::string_view part = {};  // the one that counts equal parts of its dimension 0; empty: none does

  // Output 0 has the labels 0, 1, ..., and all tensors are aligned with it at their last dimensions; what
  // repeats has none.
  void align();
  // The dimensions [first, last) of every tensor are whole.
  void keep_whole(std::size_t first, std::size_t last);
  // Whether every dimension with the label can be cut into so many equal parts.
  bool can_cut(int label, std::int64_t parts) const;
};

// The same elements at the same places, where inputs broadcast.
void elementwise(DimensionMap& map);
// Along `axis` (the last unless set) each line is whole; tensors are alike at the other axes.
void along_axis(DimensionMap& map);
void along_first_axis(DimensionMap& map);           // likewise, the first unless set
void along_first_axis_of_shape(DimensionMap& map);  // likewise; `shape` is that of output 0
void without_axis_dimensions(DimensionMap& map);    // likewise as along_axis; outputs lack the axis
void matmul_dimensions(DimensionMap& map);          // the last two are matrices, those before broadcast
void reduce_dimensions(DimensionMap& map);          // `axes`, `keep_dims`; a sum
void reduce_mean_dimensions(DimensionMap& map);     // likewise, a mean
void reduce_max_dimensions(DimensionMap& map);      // likewise
void reduce_min_dimensions(DimensionMap& map);      // likewise
void sum_to_dimensions(DimensionMap& map);
void broadcast_to_dimensions(DimensionMap& map);
void reshape_dimensions(DimensionMap& map);
void transpose_dimensions(DimensionMap& map);
void gather_dimensions(DimensionMap& map);
void scatter_add_dimensions(DimensionMap& map);
void norm_dimensions(DimensionMap& map);  // layer_norm: from `begin_norm_axis` on all is whole
void norm_grad_dimensions(DimensionMap& map);
void rms_norm_dimensions(DimensionMap& map);
void rms_norm_grad_dimensions(DimensionMap& map);
void slice_dimensions(DimensionMap& map);  // dimensions that are taken whole
void pad_dimensions(DimensionMap& map);    // those that stay as they are
void one_hot_dimensions(DimensionMap& map);
void dropout_dimensions(DimensionMap& map);  // whole samples, whose numbers decide what stays
void conv_dimensions(DimensionMap& map);     // samples and channels; images and volumes are whole
void conv_grad_input_dimensions(DimensionMap& map);
void conv_grad_weight_dimensions(DimensionMap& map);
void channel_sum_dimensions(DimensionMap& map);
void pool_dimensions(DimensionMap& map);
void batch_norm_dimensions(DimensionMap& map);  // outside of training
void batch_norm_grad_dimensions(DimensionMap& map);
void attention_dimensions(DimensionMap& map);  // samples, heads, and queries that see all keys
void attention_grad_dimensions(DimensionMap& map);
void loss_dimensions(DimensionMap& map);  // of rows of classes and their labels, but for a mean
void loss_grad_dimensions(DimensionMap& map);

}  // namespace muster::graph
