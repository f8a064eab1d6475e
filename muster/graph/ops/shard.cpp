// shard: how a tensor is divided over a mesh of ranks, said in the middle of a graph.
#include "muster/graph/ops/ops.h"
#include "muster/graph/sharding/mesh.h"

namespace muster::graph {
namespace {
namespace shard_rows {

Types infer(const Signature& signature) {
  MUSTER_TRY(const TensorLayout layout, layout_in(signature.attributes, signature.inputs[0].shape));
  return same_as_first(signature);
}

// What flows back is divided alike.
std::vector<Value> gradient(const GradientQuery& query) {
  return {apply("shard", {query.output_gradients[0]}, query.attributes)};
}

}  // namespace shard_rows
}  // namespace

std::vector<const Op*> rows_of_shard() {
  using namespace shard_rows;
  static const Op op{
      .name = "shard",
      .documentation =
          "x, whose dimensions are divided over ranks from here on: `mesh` has the axes of the ranks and "
          "their sizes (\"data=2,model=4\"), `layout` the axes that cut each dimension (\"data;;model\", "
          "several with a + between), which is a multiple of their sizes. `rank` is this process's. Any "
          "dtype. Plans divide what is computed with it; alone it is x. Source: Xu et al., GSPMD, arXiv "
          "2105.04663.",
      .infer = infer,
      .gradient = gradient,
      .kernels = {},
      .sharing = Sharing::view,
  };
  return {&op};
}

}  // namespace muster::graph
