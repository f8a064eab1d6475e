#include "muster/cluster/scheduler/parameter_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "muster/cluster/scheduler/job.h"
#include "muster/cluster/scheduler/traits_check.h"

namespace muster::cluster {
namespace {

constexpr std::size_t rows_max = 64;  // a worker that is further behind is not compared

// Whether no script runs, but an executable (train/program.h).
bool is_program(const Peer& peer) {
  return std::ranges::any_of(peer.traits, [](const Trait& trait) { return trait.key == "program"; });
}

std::string advice(bool reduces, bool is_program) {
  if (reduces)
    return "Gradients are reduced, so something else differs: a parameter whose gradient the reducer does "
           "not get, a seed, or code that depends on the rank";
  if (is_program)
    return "Gradients are not reduced, so each worker trains a network of its own: call "
           "train::set_parallel_mode(train::ParallelMode::data_parallel) and train::set_gradients_mean(true) "
           "before the network is trained, and in a loop by hand use train::TrainStep or "
           "train::DistributedReducer";
  return "Gradients are not reduced, so each worker trains a network of its own: call "
         "set_auto_parallel_context(parallel_mode=\"data_parallel\", gradients_mean=True) before the network "
         "is trained, and in a loop by hand give the gradients to nn.DistributedGradReducer";
}

std::string other_batches(std::uint64_t step, const std::uint32_t (&ranks)[2]) {
  return fmt::format(
      "the workers were given different batches in step {}: they are not the same on ranks {} and {}. Over a "
      "mesh every worker is given the whole batch, which the mesh cuts: read the same rows in the same order "
      "on all of them, without num_shards and shard_id, and with the same seed",
      step, ranks[0], ranks[1]);
}

}  // namespace

void ParameterCheck::note(const Peer& peer, const ParameterReport& report) {
  if (has_told_ || report.hashes.empty()) return;
  const std::pair key{report.series, report.step};
  const auto [found, is_first] =
      rows_.try_emplace(key, Row{.rank = peer.member.rank, .hashes = report.hashes});
  Row& row = found->second;
  if (!report.names.empty()) row.names = report.names;
  if (!is_first) compare(row, peer, report);
  if (row.difference && !row.names.empty()) return tell(row, report.step);
  if (rows_.size() > rows_max) rows_.erase(rows_.begin());
}

void ParameterCheck::compare(Row& row, const Peer& peer, const ParameterReport& report) const {
  if (row.difference || report.hashes.size() != row.hashes.size()) return;
  const auto [mine, other] = std::ranges::mismatch(row.hashes, report.hashes);
  if (mine == row.hashes.end()) return;
  row.difference =
      Difference{.ranks = {std::min(row.rank, peer.member.rank), std::max(row.rank, peer.member.rank)},
                 .index = static_cast<std::size_t>(mine - row.hashes.begin()),
                 .reduces = report.reduces};
}

void ParameterCheck::tell(const Row& row, std::uint64_t step) {
  has_told_ = true;
  const Difference& found = *row.difference;
  const std::string name = found.index < row.names.size() ? row.names[found.index] : "a parameter";
  const auto peer_of = [](const auto& entry) -> const Peer& { return entry.second; };
  const std::string text =
      name == batch_name
          ? other_batches(step, found.ranks)
          : fmt::format(
                "the parameters of the workers differ after step {} of their optimizer: '{}' is not the same "
                "on ranks {} and {}. {}",
                step, name, found.ranks[0], found.ranks[1],
                advice(found.reduces, std::ranges::any_of(job_.peers, is_program, peer_of)));
  if (is_strict(job_))
    return job_.fail({Code::invalid_argument, text + ". (Unset MUSTER_STRICT to get a warning only)",
                      exit_code_configuration});
  job_.tell_all<message::Stuck>(text);
}

}  // namespace muster::cluster
