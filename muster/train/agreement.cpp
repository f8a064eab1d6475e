#include "muster/train/agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace muster::train {
namespace {

using Words = std::vector<std::uint64_t>;

// Row r of the answer is what rank r gave; all rows are as long as `mine`.
Result<std::vector<Words>> gather(const Words& mine, Communicator& communicator) {
  Words all(mine.size() * communicator.size());
  MUSTER_TRY_VOID(communicator.all_gather(mine.data(), all.data(), mine.size() * sizeof(std::uint64_t)));
  std::vector<Words> rows;
  for (std::size_t begin = 0; begin < all.size(); begin += mine.size())
    rows.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(begin),
                      all.begin() + static_cast<std::ptrdiff_t>(begin + mine.size()));
  return rows;
}

std::vector<std::uint32_t> ranks_unlike_rank_0(const std::vector<Words>& rows, std::size_t column) {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 1; rank < rows.size(); ++rank)
    if (rows[rank][column] != rows[0][column]) ranks.push_back(rank);
  return ranks;
}

// What identifies a parameter before its values are looked at.
std::uint64_t hash_of_description(const NamedTensor& parameter) {
  return hash_text(fmt::format("{} {} {}", parameter.name, to_string(parameter.value.dtype()),
                               to_string(parameter.value.shape())));
}

Result<> check_counts(std::size_t count, Communicator& communicator) {
  MUSTER_TRY(const auto rows, gather({count}, communicator));
  for (std::uint32_t rank : ranks_unlike_rank_0(rows, 0))
    return fail(
        Code::invalid_argument,
        fmt::format(
            "rank 0 trains {} parameters but rank {} trains {}: every rank must build the same network",
            rows[0][0], rank, rows[rank][0]));
  return {};
}

// ---- Places -----------------------------------------------------------------------------------------------

// As much of a placed cell as is told to others, in whole words.
struct PlacedText {
  char what[96];
  char line[64];
};
constexpr std::size_t placed_words = sizeof(PlacedText) / sizeof(std::uint64_t);
// Cells of which one may be named; of what comes behind them only the hash is compared.
constexpr std::size_t placed_max = 64;

PlacedText text_of(const PlacedCell& cell) {
  PlacedText text{};
  cell.what.copy(text.what, sizeof(text.what) - 1);
  cell.line.copy(text.line, sizeof(text.line) - 1);
  return text;
}

PlacedText text_at(const Words& row, std::size_t index) {
  PlacedText text{};
  std::memcpy(&text, row.data() + index * placed_words, sizeof(text));
  return text;
}

std::string told(const PlacedText& text) {
  return text.what[0] == 0 ? "nothing there" : fmt::format("{} ({})", text.what, text.line);
}

// The first place at which `rank` is unlike rank 0.
Error unlike_places(const std::vector<Words>& rows, std::uint32_t rank) {
  std::string detail = "their places differ after the first " + std::to_string(placed_max);
  for (std::size_t i = 0; i < placed_max; ++i) {
    const PlacedText first = text_at(rows[0], i), other = text_at(rows[rank], i);
    if (std::strcmp(first.what, other.what) == 0) continue;
    detail = fmt::format("rank 0 has placed {} where rank {} has placed {}", told(first), rank, told(other));
    break;
  }
  return {Code::invalid_argument, "the workers place the network differently: " + detail +
                                      ". Every rank must make the same calls of place()"};
}

}  // namespace

Result<> check_equal_places(std::span<const PlacedCell> places, Communicator& communicator) {
  if (communicator.size() == 1) return {};
  std::string all;
  for (const PlacedCell& cell : places) all += cell.what + "\n";
  MUSTER_TRY(const auto hashes, gather({hash_text(all)}, communicator));
  const auto ranks = ranks_unlike_rank_0(hashes, 0);
  if (ranks.empty()) return {};
  Words mine(placed_max * placed_words);
  for (std::size_t i = 0; i < std::min(places.size(), placed_max); ++i) {
    const PlacedText text = text_of(places[i]);
    std::memcpy(mine.data() + i * placed_words, &text, sizeof(text));
  }
  MUSTER_TRY(const auto rows, gather(mine, communicator));
  return fail(unlike_places(rows, ranks.front()));
}

namespace {

// Of each parameter its name and what `told` says of it. `refuse` is given the first that differs, and the
// ranks that are unlike rank 0.
template <class Told, class Refuse>
Result<> compare_parameters(std::span<const graph::ParameterPtr> parameters, Communicator& communicator,
                            const Told& told, const Refuse& refuse) {
  MUSTER_TRY_VOID(check_counts(parameters.size(), communicator));
  if (parameters.empty()) return {};
  Words mine;
  for (const graph::ParameterPtr& parameter : parameters)
    mine.push_back(hash_text(parameter->name() + " " + told(*parameter)));
  MUSTER_TRY(const auto rows, gather(mine, communicator));
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (const auto ranks = ranks_unlike_rank_0(rows, i); !ranks.empty())
      return fail(Code::invalid_argument, refuse(*parameters[i], ranks));
  return {};
}

}  // namespace

Result<> check_equal_layouts(std::span<const graph::ParameterPtr> parameters, Communicator& communicator) {
  if (communicator.size() == 1 || parameters.empty()) return {};
  const auto layout_of = [](const graph::Parameter& parameter) {
    return parameter.share() ? to_string(parameter.share()->layout) : std::string("whole");
  };
  return compare_parameters(
      parameters, communicator, layout_of,
      [&](const graph::Parameter& parameter, const std::vector<std::uint32_t>& ranks) {
        return fmt::format(
            "rank {} has divided parameter '{}' otherwise than rank 0, or has another one there: on "
            "this rank it is {}. Every rank must call shard() alike",
            fmt::join(ranks, ", "), parameter.name(), layout_of(parameter));
      });
}

Result<> check_equal_marks(std::span<const graph::ParameterPtr> parameters, Communicator& communicator) {
  if (communicator.size() == 1) return {};
  const auto place_of = [](const graph::Parameter& parameter) {
    return std::string(graph::served_number(parameter) ? "on the parameter servers" : "in the worker");
  };
  return compare_parameters(
      parameters, communicator, place_of,
      [&](const graph::Parameter& parameter, const std::vector<std::uint32_t>& ranks) {
        return fmt::format(
            "rank {} has parameter '{}' elsewhere than rank 0, or has another one there: this "
            "rank has it {}. Every rank must call set_param_ps() alike",
            fmt::join(ranks, ", "), parameter.name(), place_of(parameter));
      });
}

namespace {

constexpr std::size_t source_words = 64;

// What rank r gave: its beginning.
Result<std::vector<std::string>> gather_texts(const std::string& mine, Communicator& communicator) {
  Words words(source_words);
  std::memcpy(words.data(), mine.data(), std::min(mine.size(), source_words * sizeof(words[0]) - 1));
  MUSTER_TRY(const auto rows, gather(words, communicator));
  std::vector<std::string> texts;
  for (const Words& row : rows) texts.emplace_back(reinterpret_cast<const char*>(row.data()));
  return texts;
}

// The first place at which two workers divide differently, of which one may divide nothing there.
std::size_t first_unlike(const Words& mine, const Words& others) {
  return static_cast<std::size_t>(std::ranges::mismatch(mine, others).in1 - mine.begin());
}

}  // namespace

Result<> check_equal_cuts(std::span<const std::string> cuts, Communicator& communicator) {
  if (communicator.size() == 1) return {};
  Words mine;
  for (const std::string& cut : cuts) mine.push_back(hash_text(cut));
  MUSTER_TRY(const auto sums,
             gather({mine.size(), hash_bytes(mine.data(), mine.size() * sizeof(mine[0]))}, communicator));
  const auto ranks = ranks_unlike_rank_0(sums, 1);
  if (ranks.empty()) return {};
  std::size_t longest = 0;
  for (const Words& row : sums) longest = std::max(longest, static_cast<std::size_t>(row[0]));
  mine.resize(longest);
  MUSTER_TRY(const auto rows, gather(mine, communicator));
  const std::size_t at = first_unlike(rows[0], rows[ranks.front()]);
  MUSTER_TRY(const auto texts, gather_texts(at < cuts.size() ? cuts[at] : "nothing", communicator));
  return fail(
      Code::invalid_argument,
      fmt::format("rank {} divides the step otherwise than rank 0: it divides {} where rank 0 divides "
                  "{}. Every rank must call shard() alike",
                  ranks.front(), texts[ranks.front()], texts[0]));
}

Result<> check_equal_inputs(std::span<const Tensor> inputs, Communicator& communicator) {
  if (communicator.size() == 1) return {};
  const auto differs = [](const std::vector<std::uint32_t>& ranks, const std::string& what) {
    return fail(
        Code::invalid_argument,
        fmt::format("rank {} gives the step {} than rank 0. Over a mesh every worker is given the whole "
                    "batch, which the mesh cuts: read the same rows on all of them, without num_shards "
                    "and shard_id, and with the same seed",
                    fmt::join(ranks, ", "), what));
  };
  MUSTER_TRY(const auto counts, gather({inputs.size()}, communicator));
  if (const auto ranks = ranks_unlike_rank_0(counts, 0); !ranks.empty())
    return differs(ranks, fmt::format("another number of inputs ({} here)", inputs.size()));
  if (inputs.empty()) return {};
  Words mine;
  for (const Tensor& input : inputs) {
    mine.push_back(hash_text(fmt::format("{} {}", to_string(input.dtype()), to_string(input.shape()))));
    mine.push_back(hash_bytes(input.bytes(), input.size_bytes()));
  }
  MUSTER_TRY(const auto rows, gather(mine, communicator));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    for (const std::size_t column : {2 * i, 2 * i + 1})
      if (const auto ranks = ranks_unlike_rank_0(rows, column); !ranks.empty())
        return differs(ranks, fmt::format("{} in input {} ({} {} here)",
                                          column % 2 == 0 ? "another shape or dtype" : "other values", i,
                                          to_string(inputs[i].dtype()), to_string(inputs[i].shape())));
  return {};
}

namespace {

std::string text_of(const std::optional<graph::Parameter::PieceSource>& source) {
  if (!source) return {};
  return fmt::format("{}, '{}'", source->save.empty() ? "an unknown step" : source->save, source->file);
}

// The first two that have said something, and not the same; nothing where all fit.
std::optional<std::pair<std::uint32_t, std::uint32_t>> unlike_ranks(const std::vector<Words>& rows,
                                                                    std::size_t column) {
  std::optional<std::uint32_t> first;
  for (std::uint32_t rank = 0; rank < rows.size(); ++rank) {
    if (rows[rank][column] == 0) continue;
    if (!first) first = rank;
    if (rows[rank][column] != rows[*first][column]) return std::pair(*first, rank);
  }
  return std::nullopt;
}

}  // namespace

Result<> check_pieces_of_one_save(std::span<const graph::ParameterPtr> parameters,
                                  Communicator& communicator) {
  if (communicator.size() == 1) return {};
  MUSTER_TRY_VOID(check_counts(parameters.size(), communicator));
  if (parameters.empty()) return {};
  Words mine;
  for (const graph::ParameterPtr& parameter : parameters)
    mine.push_back(parameter->piece_source() ? hash_text(parameter->piece_source()->save) | 1 : 0);
  MUSTER_TRY(const auto rows, gather(mine, communicator));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto unlike = unlike_ranks(rows, i);
    if (!unlike) continue;
    MUSTER_TRY(const auto texts, gather_texts(text_of(parameters[i]->piece_source()), communicator));
    return fail(
        Code::invalid_argument,
        fmt::format("the pieces of parameter '{}' are of several saves: rank {} has loaded {}, and rank "
                    "{} {}. Load files of one save on every rank, such as the last whole one",
                    parameters[i]->name(), unlike->first, texts[unlike->first], unlike->second,
                    texts[unlike->second]));
  }
  return {};
}

Result<> check_equal_steps(std::int64_t steps_an_epoch, Communicator& communicator) {
  if (communicator.size() == 1) return {};
  MUSTER_TRY(const auto rows, gather({static_cast<std::uint64_t>(steps_an_epoch)}, communicator));
  for (std::uint32_t rank : ranks_unlike_rank_0(rows, 0))
    return fail(Code::invalid_argument,
                fmt::format("rank 0 makes {} steps an epoch but rank {} makes {}: give every rank as many "
                            "items (num_shards and shard_id do)",
                            rows[0][0], rank, rows[rank][0]));
  return {};
}

Result<> check_equal_networks(std::uint64_t fingerprint, Communicator& communicator) {
  if (communicator.size() == 1) return {};
  MUSTER_TRY(const auto rows, gather({fingerprint}, communicator));
  if (const auto ranks = ranks_unlike_rank_0(rows, 0); !ranks.empty())
    return fail(
        Code::invalid_argument,
        fmt::format("rank {} has traced another network than rank 0, or placed it otherwise: every rank "
                    "must build the same network with the same calls of place()",
                    fmt::join(ranks, ", ")));
  return {};
}

Result<> check_equal_gathering(std::uint64_t callbacks, Communicator& communicator) {
  if (communicator.size() == 1) return {};
  MUSTER_TRY(const auto rows, gather({callbacks}, communicator));
  if (const auto ranks = ranks_unlike_rank_0(rows, 0); !ranks.empty())
    return fail(Code::invalid_argument,
                fmt::format("rank 0 has {} ModelCheckpoint callbacks but rank {} has {}: saving collects the "
                            "parameters of all workers, so give all of them the same",
                            rows[0][0], ranks.front(), rows[ranks.front()][0]));
  return {};
}

Result<> compare_traits(const cluster::Traits& mine, bool strict, Communicator& communicator) {
  if (communicator.size() == 1) return {};
  constexpr std::size_t value_words = 4;  // the last byte ends the text
  Words words(1 + mine.size() * value_words);
  words[0] = strict ? 1 : 0;
  for (std::size_t i = 0; i < mine.size(); ++i)
    std::memcpy(&words[1 + i * value_words], mine[i].value.data(),
                std::min(mine[i].value.size(), value_words * sizeof(std::uint64_t) - 1));
  MUSTER_TRY(const auto rows, gather(words, communicator));
  std::vector<cluster::Traits> traits(rows.size(), mine);
  std::vector<cluster::FingerprintSource> sources;
  for (std::uint32_t rank = 0; rank < rows.size(); ++rank) {
    for (std::size_t i = 0; i < mine.size(); ++i)
      traits[rank][i].value = reinterpret_cast<const char*>(&rows[rank][1 + i * value_words]);
    sources.push_back({.rank = rank, .traits = &traits[rank]});
  }
  const std::vector<std::string> lines = cluster::trait_differences(sources);
  if (lines.empty()) return {};
  const std::string text = fmt::format("the workers of this job differ: {}", fmt::join(lines, "; "));
  const bool one_is_strict =
      std::any_of(rows.begin(), rows.end(), [](const Words& row) { return row[0] != 0; });
  if (one_is_strict)
    return fail(Code::invalid_argument, text + ". Make them alike" +
                                            (real_environment().get("MUSTER_STRICT")
                                                 ? ", or unset MUSTER_STRICT to get a warning only"
                                                 : ""));
  log::warning(text);
  return {};
}

Result<> check_no_layerwise(std::span<const graph::ParameterPtr> parameters) {
  for (const graph::ParameterPtr& parameter : parameters)
    if (parameter->is_layerwise())
      return fail(Code::not_provided,
                  fmt::format("parameter '{}' has layerwise_parallel=True, each worker one of its own, and "
                              "workers that train together hold equal parameters: leave layerwise_parallel "
                              "out, or divide the parameter over a mesh (muster.parallel)",
                              parameter->name()));
  return {};
}

Result<> check_agreement(std::span<const NamedTensor> parameters, Communicator& communicator) {
  if (communicator.size() == 1) return {};
  MUSTER_TRY_VOID(check_counts(parameters.size(), communicator));
  if (parameters.empty()) return {};
  Words mine;
  for (const NamedTensor& parameter : parameters) {
    mine.push_back(hash_of_description(parameter));
    mine.push_back(hash_bytes(parameter.value.bytes(), parameter.value.size_bytes()));
  }
  MUSTER_TRY(const auto rows, gather(mine, communicator));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const NamedTensor& parameter = parameters[i];
    if (const auto ranks = ranks_unlike_rank_0(rows, 2 * i); !ranks.empty())
      return fail(
          Code::invalid_argument,
          fmt::format(
              "parameter {} has another name, dtype or shape on rank {} than on rank 0 (here: '{}' {} {}): "
              "every rank must build the same network",
              i, fmt::join(ranks, ", "), parameter.name, to_string(parameter.value.dtype()),
              to_string(parameter.value.shape())));
    if (const auto ranks = ranks_unlike_rank_0(rows, 2 * i + 1); !ranks.empty())
      return fail(
          Code::invalid_argument,
          fmt::format(
              "parameter '{}' has other values on rank {} than on rank 0: load or set the same values on "
              "every rank, or broadcast them before the first step",
              parameter.name, fmt::join(ranks, ", ")));
  }
  return {};
}

}  // namespace muster::train
