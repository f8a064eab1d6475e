#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "muster/train/aborted_step.h"
#include "muster/train/data_settings.h"
#include "muster/train/job.h"
#include "muster/train/process.h"
#include "muster/train/session.h"

namespace muster::train {
namespace {

using Numbers = std::vector<std::int64_t>;

std::int64_t product(std::span<const std::int64_t> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{1}, std::multiplies<>());
}

// The slices beside each other that have the rows of one: all dimensions but the first.
std::int64_t slices_in_rows(const ColumnSlices& slices) { return product(std::span(slices.cuts).subspan(1)); }

std::int64_t number_of(const ColumnSlices& slices, std::uint32_t worker) {
  return slices.numbers.empty() ? worker % product(slices.cuts) : slices.numbers[worker];
}

Result<> check(const ColumnSlices& slices, const Tensor& piece) {
  const std::int64_t parts = product(slices.cuts);
  if (slices.cuts.size() != piece.shape().rank())
    return fail(Code::invalid_argument,
                fmt::format("dataset_strategy: a column of shape {} has {} dimensions, and its cuts ({}) are "
                            "for {}",
                            to_string(piece.shape()), piece.shape().rank(), fmt::join(slices.cuts, ", "),
                            slices.cuts.size()));
  if (world_size() % parts != 0 || (!slices.numbers.empty() && slices.numbers.size() != world_size()))
    return fail(Code::invalid_argument,
                fmt::format("dataset_strategy: cuts ({}) are {} slices, and there are {} workers",
                            fmt::join(slices.cuts, ", "), parts, world_size()));
  return {};
}

// Who reads each slice that has this worker's rows: the first of those that read the same.
std::vector<std::uint32_t> readers_of(const ColumnSlices& slices) {
  const std::int64_t in_rows = slices_in_rows(slices);
  const std::int64_t rows = number_of(slices, rank()) / in_rows;
  std::vector<std::optional<std::uint32_t>> found(static_cast<std::size_t>(in_rows));
  for (std::uint32_t worker = 0; worker < world_size(); ++worker) {
    const std::int64_t number = number_of(slices, worker);
    auto& reader = found[static_cast<std::size_t>(number % in_rows)];
    if (number / in_rows == rows && !reader) reader = worker;
  }
  std::vector<std::uint32_t> readers;
  for (const auto& reader : found) {
    MUSTER_CHECK(reader.has_value(), "each slice of a column has a reader");
    readers.push_back(*reader);
  }
  return readers;
}

// Puts a slice at its place: run by run of the last dimension.
void put(const Tensor& whole, const std::byte* slice, const Shape& shape, std::span<const std::int64_t> at) {
  const std::size_t rank = shape.rank();
  const std::size_t run = static_cast<std::size_t>(shape[rank - 1]) * size_bytes(whole.dtype());
  const std::int64_t runs = shape[rank - 1] == 0 ? 0 : shape.elements() / shape[rank - 1];
  for (std::int64_t number = 0; number < runs; ++number) {
    std::int64_t left = number, stride = whole.shape()[rank - 1];
    std::int64_t place = at[rank - 1] * shape[rank - 1];
    for (std::size_t dim = rank - 1; dim-- > 0;) {
      place += (left % shape[dim] + at[dim] * shape[dim]) * stride;
      left /= shape[dim];
      stride *= whole.shape()[dim];
    }
    std::memcpy(whole.bytes() + static_cast<std::size_t>(place) * size_bytes(whole.dtype()),
                slice + static_cast<std::size_t>(number) * run, run);
  }
}

// The slices of this worker's rows, as one tensor.
Tensor joined(const ColumnSlices& slices, const Tensor& piece, const std::vector<std::byte>& gathered) {
  Numbers sizes(piece.shape().begin(), piece.shape().end());
  for (std::size_t dim = 1; dim < sizes.size(); ++dim) sizes[dim] *= slices.cuts[dim];
  Tensor whole(piece.dtype(), Shape(std::move(sizes)));
  const std::vector<std::uint32_t> readers = readers_of(slices);
  for (std::size_t slice = 0; slice < readers.size(); ++slice) {
    Numbers at(slices.cuts.size(), 0);
    auto left = static_cast<std::int64_t>(slice);
    for (std::size_t dim = at.size(); dim-- > 1;) {
      at[dim] = left % slices.cuts[dim];
      left /= slices.cuts[dim];
    }
    put(whole, gathered.data() + readers[slice] * piece.size_bytes(), piece.shape(), at);
  }
  return whole;
}

// What all workers read: two calls, so that slices of unlike shapes are told and not waited for.
Result<> gather(Communicator& all, const Tensor& piece, std::vector<std::byte>& gathered) {
  const Shape& shape = piece.shape();
  Numbers mine{static_cast<std::int64_t>(piece.dtype())};
  mine.insert(mine.end(), shape.begin(), shape.end());
  Numbers types(mine.size() * all.size());
  MUSTER_TRY_VOID(all.all_gather(mine.data(), types.data(), mine.size() * sizeof(std::int64_t)));
  for (std::size_t other = 0; other < all.size(); ++other) {
    const auto type = std::span(types).subspan(other * mine.size(), mine.size());
    if (std::equal(type.begin(), type.end(), mine.begin())) continue;
    return fail(
        Code::invalid_argument,
        fmt::format("dataset_strategy: worker {} reads a slice of shape ({}), and this one of ({}): all "
                    "are to be of the same shape and type",
                    other, fmt::join(type.subspan(1), ", "), fmt::join(shape, ", ")));
  }
  gathered.resize(piece.size_bytes() * all.size());
  return all.all_gather(piece.bytes(), gathered.data(), piece.size_bytes());
}

}  // namespace

void set_column_slices(std::vector<ColumnSlices> columns) {
  process().choices.data.slices = std::move(columns);
}

Result<Tensor> joined_slices(std::size_t column, const Tensor& piece) {
  const std::vector<ColumnSlices>& columns = data_settings().slices;
  if (column >= columns.size() || columns[column].cuts.empty()) return piece;
  const ColumnSlices& slices = columns[column];
  if (slices_in_rows(slices) == 1 || world_size() == 1) return piece;
  MUSTER_TRY_VOID(check(slices, piece));
  std::vector<std::byte> gathered(piece.size_bytes() * world_size());
  const auto call = [&](Communicator& all) { return gather(all, piece, gathered); };
  MUSTER_TRY_VOID(call_in_body([&] {
    return Session::current()->recovery().explicit_collective("the slices of a batch", std::nullopt, call);
  }));
  zero_if_aborted(gathered);
  return joined(slices, piece, gathered);
}

}  // namespace muster::train
