// Messages and small calls, as tests of every kind of link make them.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <vector>

#include "ranks.h"

namespace muster::collective {

template <class Byte>
auto cut(std::span<Byte> bytes, const std::vector<std::size_t>& sizes) {
  std::vector<std::span<Byte>> pieces;
  for (const std::size_t size : sizes) {
    pieces.push_back(bytes.first(size));
    bytes = bytes.subspan(size);
  }
  return pieces;
}

inline Result<> send(Communicator& comm, std::uint32_t to, const Bytes& bytes,
                     std::optional<std::vector<std::size_t>> sizes = {}) {
  return comm.send(to, cut(std::span(bytes), sizes.value_or(std::vector{bytes.size()})));
}
inline Result<> receive(Communicator& comm, std::uint32_t from, Bytes& bytes,
                        std::optional<std::vector<std::size_t>> sizes = {}) {
  return comm.receive(from, cut(std::span(bytes), sizes.value_or(std::vector{bytes.size()})));
}

inline void expect_message(Communicator& comm, std::uint32_t from, const Bytes& expected,
                           std::optional<std::vector<std::size_t>> sizes = {}) {
  Bytes got(expected.size());
  const auto done = receive(comm, from, got, std::move(sizes));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(got == expected) << expected.size() << " bytes from rank " << from;
}
inline void expect_sent(const Result<>& done) { ASSERT_TRUE(done) << done.error().message; }

inline Duration timed(const std::function<void()>& work) {
  const TimePoint start = real_clock().now();
  work();
  return real_clock().now() - start;
}

inline Result<> sum_of_one(Communicator& comm, std::size_t count = 1) {
  std::vector<float> data(count, 1);
  return comm.all_reduce(data.data(), data.data(), count, DType::float32, Reduction::sum);
}

}  // namespace muster::collective
