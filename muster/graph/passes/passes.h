// Private to graph: rewriting a graph before it is compiled. Each pass keeps what the graph computes.
#pragma once

#include <span>

#include "muster/graph/nodes.h"

namespace muster::graph {

// Drops nodes that no output and no effect needs.
void remove_dead(Graph& graph);
// A cast to bfloat16 of what was cast from it is the value itself, and a cast to float32 of a product or of a
// weight's gradient in bfloat16, if that has no other user, is what was rounded.
void fuse_casts(Graph& graph);
// matmul, bias_add and relu or tanh in a row become one `dense`.
void fuse_dense(Graph& graph);
// relu joins the conv2d, batch_norm or add before it, and on the way back relu_grad the batch_norm_grad after
// it or the add before it, or else changes places with the max_pool2d_grad before it.
void fuse_relu(Graph& graph);
// A softmax of scaled products, and its product with values, become one attention. `wrt` are values that
// gradients will be taken for, of which the products must not depend in other ways than through q, k and v.
void fuse_attention(Graph& graph, std::span<const ValueId> wrt = {});
// Rotary positions that are written in several ops become one rotary, before heads and rows change places.
void fuse_rotary(Graph& graph, std::span<const ValueId> wrt = {});
// A root mean square normalization that is written in several ops becomes one rms_norm. `wrt` as above.
void fuse_norms(Graph& graph, std::span<const ValueId> wrt = {});
// Of products in a row, (a b) c, the order that takes far fewer operations. `wrt` as above.
void reorder_products(Graph& graph, std::span<const ValueId> wrt = {});
// A product of a gradient and one number, as clipping by a norm makes it, joins the adam_weight_decay behind
// it.
void fuse_gradient_scales(Graph& graph);
// A sum of padded values that cover the whole once, as gradients of slices do, becomes their concatenation.
void fuse_pads(Graph& graph);
// A sum of products a^T b of few rows, as gradients of recurrent weights are, becomes one of many rows. Its
// sum has another order.
void join_summed_products(Graph& graph);
// All of the above. What they make has the bits of what they replace, but for fuse_casts, fuse_attention,
// fuse_norms, reorder_products, join_summed_products and the sign of zeros in fuse_pads.
void fuse(Graph& graph);
// An all_reduce that asks for buckets becomes several, each right behind the node that makes its last input.
void make_buckets(Graph& graph);
// Calls that gather parameters serve all uses that are near, those that reduce go right behind what they
// reduce, and small ones of either kind travel together.
void join_calls(Graph& graph);
// Updates of parameters go as far back as they may, so that they stand in a row and run as one pass.
void gather_updates(Graph& graph);

}  // namespace muster::graph
