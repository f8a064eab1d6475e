// A job that divides one network over its workers, as Cell::place says.
//
// A copy of the network is a replica: by default all workers together; in parallel mode data_parallel as many
// as there are placed ranks, one replica after the other. Rank r of place() is the worker r of each replica.
// Over a mesh with stages there is one replica, of several pipelines: those workers that are at the same
// place of their stages' meshes.
//
// The placed ranks are those of the network that a Model works on, and of the primitives, which belong to no
// network; in a loop by hand, where the network is not known before it is traced, those of all that lives in
// this process.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/data/data.h"
#include "muster/nn/nn.h"

namespace muster::train {

struct PipelineLayout {
  std::uint32_t stages = 1;  // workers of one replica
  std::uint32_t replicas = 1;
  std::uint32_t stage = 0;  // of this worker in its replica
  std::uint32_t replica = 0;
  std::uint32_t pipeline = 0;  // whose workers are those from pipeline * stages on
  bool divides() const { return stages > 1; }
};

// Of this process, by what is placed now. An error in a data-parallel job whose workers are no multiple of
// the placed ranks.
Result<PipelineLayout> pipeline_layout();

// While it lives, division() on this thread is that of these networks (null: none). Scopes nest.
class PipelineLayoutScope {
 public:
  explicit PipelineLayoutScope(std::span<const nn::Cell* const> networks);
  ~PipelineLayoutScope();
  PipelineLayoutScope(const PipelineLayoutScope&) = delete;
  PipelineLayoutScope& operator=(const PipelineLayoutScope&) = delete;

 private:
  std::optional<std::uint32_t> outer_;
};

// Which replica this worker is a part of, and how many there are: what shard_id and num_shards of a dataset
// are in a placed data-parallel job. Where nothing is placed each worker of a data-parallel job is one. After
// the network was made, since place() decides; a later place() that would change the answer is an error. Of
// all that is placed in this process, or of one network.
Result<std::uint32_t> get_replica_rank(const nn::Cell* network = nullptr);
Result<std::uint32_t> get_replica_count(const nn::Cell* network = nullptr);

// Asks place() and calls in eager mode to look at this process's job.
void watch_places();

// In a divided job: a dataset of one shard for each worker would give every worker of a copy
// another one, and only one of them reads; one of as many shards as another network has copies is another's.
Result<> check_shards(const data::Dataset& dataset);
// Before the first trace: each placed cell of the tree is placed on a worker that there is.
Result<> check_places(const nn::Cell& network);
// After it: each of them was called.
Result<> check_placed_were_called(const nn::Cell& network);
// What is placed and where, in the order of the tree: the same on all workers, or they divide the network
// differently.
struct PlacedCell {
  std::string what;  // "Dense 'fc1' on worker 1"
  std::string line;  // "net.py:31"
};
std::vector<PlacedCell> placed_cells(const nn::Cell& network);
// Where the first placed cell of the tree is, or 0: perhaps the worker that uses the first input.
std::uint32_t first_placed_rank(const nn::Cell& network);

}  // namespace muster::train
