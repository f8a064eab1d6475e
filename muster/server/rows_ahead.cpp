#include "muster/server/rows_ahead.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster::server {
namespace {

// The one part of a batch, empty where there is none.
TablePart part_of(const Body& body) {
  const auto& parts = static_cast<const ArrivedRows*>(body.get())->batch.parts;
  return parts.empty() ? TablePart{} : parts[0];
}

tl::unexpected<Error> something_else(std::uint32_t server) {
  return fail(Code::corrupt,
              fmt::format("server {} has answered something else than it was asked for ahead", server));
}

}  // namespace

std::optional<std::uint32_t> RowsAhead::find(std::uint32_t server, std::uint64_t id,
                                             std::size_t& from) const {
  const auto ids = ids_.ids(server);
  while (from < ids.size() && ids[from] < id) ++from;
  if (from == ids.size() || ids[from] != id) return std::nullopt;
  return static_cast<std::uint32_t>(ids_.begin(server) + from);
}

Result<> RowsAhead::arrive(std::vector<Rows> rows) {
  rows_.resize(ids_.ids().size());
  for (std::uint32_t server = 0; server < rows.size(); ++server)
    MUSTER_TRY_VOID(arrive_from(server, rows[server]));
  arrived_ = std::move(rows);
  return {};
}

Result<> RowsAhead::arrive_from(std::uint32_t server, const Rows& rows) {
  const auto ids = ids_.ids(server);
  const std::size_t begin = ids_.begin(server);
  const TablePart whole = part_of(rows.early != nullptr ? rows.early : rows.body);
  if (whole.values.size() != ids.size() * width_) return something_else(server);
  for (std::size_t i = 0; i < ids.size(); ++i) rows_[begin + i] = whole.values.data() + i * width_;
  if (rows.early == nullptr) return {};
  const TablePart changed = part_of(rows.body);
  if (changed.values.size() != changed.ids.size() * width_) return something_else(server);
  std::size_t at = 0;
  for (std::size_t i = 0; i < changed.ids.size(); ++i) {
    const auto which = find(server, changed.ids[i], at);
    if (!which) return something_else(server);
    rows_[*which] = changed.values.data() + i * width_;
  }
  return {};
}

std::uint64_t RowsAhead::applied() const {
  return std::ranges::min_element(arrived_, {}, &Rows::applied)->applied;
}

}  // namespace muster::server
