// Data parallelism is only right when every rank starts from the same parameters. This proves it by hashes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "muster/base/base.h"
#include "muster/cluster/cluster.h"
#include "muster/collective/collective.h"
#include "muster/tensor/tensor.h"
#include "muster/train/pipeline_layout.h"

namespace muster::train {

struct NamedTensor {
  std::string name;
  Tensor value;
};

// A collective call: every rank makes it with its own parameters, in the same order. An error, equal on all
// ranks, names the first parameter that differs and the ranks that disagree with rank 0.
Result<> check_agreement(std::span<const NamedTensor> parameters, Communicator& communicator);

// An error where one of them is of each worker alone (layerwise_parallel): workers that train together hold
// equal parameters, which recovery relies on.
Result<> check_no_layerwise(std::span<const graph::ParameterPtr> parameters);

// A collective call like it: all ranks are to have traced the same network, placed alike; `fingerprint` is of
// that.
Result<> check_equal_networks(std::uint64_t fingerprint, Communicator& communicator);

// A collective call like it: all ranks are to have divided the same parameters over their mesh, and each in
// the same way. The error names the first that differs, and says how it is divided here.
Result<> check_equal_layouts(std::span<const graph::ParameterPtr> parameters, Communicator& communicator);

// A collective call like it, of a job with parameter servers: all ranks are to have put the same parameters
// on them. The error names the first that differs, and where it is here.
Result<> check_equal_marks(std::span<const graph::ParameterPtr> parameters, Communicator& communicator);

// A collective call like it: of a divided parameter that ranks have read in pieces, all of these are of one
// save. The error names the first that is not, and the files of two ranks.
Result<> check_pieces_of_one_save(std::span<const graph::ParameterPtr> parameters,
                                  Communicator& communicator);

// A collective call like it, before anything that depends on the division: all ranks are to have placed the
// same cells of the network that is about to run on the same workers. The error names the first that differs.
Result<> check_equal_places(std::span<const PlacedCell> places, Communicator& communicator);

// A collective call like it: all ranks are to divide what a step computes alike. `cuts` says so for each
// place where the script divides something, in their order. The error names the first that differs.
Result<> check_equal_cuts(std::span<const std::string> cuts, Communicator& communicator);

// A collective call like it: all ranks are to give a step the same inputs, which are whole. The error names
// the first that differs, and what it is here.
Result<> check_equal_inputs(std::span<const Tensor> inputs, Communicator& communicator);

// A collective call like it: all ranks are to have as many callbacks that collect parameters.
Result<> check_equal_gathering(std::uint64_t callbacks, Communicator& communicator);

// A collective call like it: all ranks are to make as many steps an epoch, or the last ones would wait for
// workers that have left. -1: without end.
Result<> check_equal_steps(std::int64_t steps_an_epoch, Communicator& communicator);

// A collective call like it: who has another value for one of the facts is named, in a warning, or in an
// error equal on all ranks where one of them is strict. All ranks give the same keys in the same order;
// values are cut after 31 bytes, an empty one is "not set".
Result<> compare_traits(const cluster::Traits& mine, bool strict, Communicator& communicator);

}  // namespace muster::train
