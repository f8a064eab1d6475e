// Several workers as threads of one process, for tests of divided graphs.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "muster/graph/graph.h"

namespace muster::graph {

// What carries the messages of a group, in order for each ordered pair. Sends wait for their receiver, as the
// slowest real transport would make them, unless they are `buffered`.
class Post {
 public:
  explicit Post(std::uint32_t size, bool buffered = false) : size_(size), buffered_(buffered) {}

  using Message = std::vector<std::byte>;

  Result<> send(std::uint32_t from, std::uint32_t to, Message message) {
    std::unique_lock lock(mutex_);
    auto& queue = queues_[{from, to}];
    queue.sent.push_back(std::move(message));
    const std::uint64_t number = ++queue.count;
    ++messages_;
    changed_.notify_all();
    if (buffered_) return {};
    if (changed_.wait_for(lock, deadline, [&] { return queue.taken >= number; })) return {};
    return fail(Code::timeout, "nobody receives from worker " + std::to_string(from));
  }

  Result<Message> receive(std::uint32_t from, std::uint32_t to) {
    std::unique_lock lock(mutex_);
    auto& queue = queues_[{from, to}];
    if (!changed_.wait_for(lock, deadline, [&] { return !queue.sent.empty(); }))
      return fail(Code::timeout, "nobody sends to worker " + std::to_string(to));
    Message message = std::move(queue.sent.front());
    queue.sent.pop_front();
    ++queue.taken;
    changed_.notify_all();
    return message;
  }

  std::uint32_t size() const { return size_; }
  // Sent so far. When nobody sends.
  std::size_t messages() const { return messages_; }

 private:
  static constexpr std::chrono::seconds deadline{20};
  struct Queue {
    std::deque<Message> sent;
    std::uint64_t count = 0;
    std::uint64_t taken = 0;
  };

  std::uint32_t size_;
  bool buffered_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Queue> queues_;
  std::size_t messages_ = 0;
};

class Worker final : public Communicator {
 public:
  Worker(Post& post, std::uint32_t rank) : post_(post), rank_(rank) {}

  std::uint32_t rank() const override { return rank_; }
  std::uint32_t size() const override { return post_.size(); }
  Result<> send(std::uint32_t to, std::span<const std::span<const std::byte>> pieces) override {
    Post::Message message;
    for (const auto piece : pieces) message.insert(message.end(), piece.begin(), piece.end());
    return post_.send(rank_, to, std::move(message));
  }
  Result<> receive(std::uint32_t from, std::span<const std::span<std::byte>> pieces) override {
    MUSTER_TRY(const Post::Message message, post_.receive(from, rank_));
    std::size_t place = 0;
    for (const auto piece : pieces) place += piece.size();
    if (place != message.size()) return fail(Code::internal, "a message of another size");
    place = 0;
    for (const auto piece : pieces) {
      std::memcpy(piece.data(), message.data() + place, piece.size());
      place += piece.size();
    }
    return {};
  }

 private:
  Post& post_;
  std::uint32_t rank_;
};

// Runs `work` once for each of `size` workers, at the same time.
template <class Made>
std::vector<Made> on_workers(std::uint32_t size, const std::function<Made(const RunContext&)>& work,
                             bool buffered = false) {
  Post post(size, buffered);
  std::vector<Made> made(size);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      Worker worker(post, rank);
      made[rank] = work({.seed = 3, .stages = &worker});
    });
  for (std::thread& thread : threads) thread.join();
  return made;
}

inline PlacementPtr on(std::uint32_t rank, std::string origin = {}) {
  return std::make_shared<const Placement>(Placement{rank, std::move(origin)});
}

// Elements that depend on `stream` alone, between -1 and 1.
inline Tensor numbers(const Shape& shape, std::uint64_t stream) {
  Tensor made(DType::float32, shape);
  const RandomStream random(11, stream);
  for (std::int64_t i = 0; i < made.elements(); ++i)
    made.data<float>()[i] = static_cast<float>(2 * random.uniform(static_cast<std::uint64_t>(i)) - 1);
  return made;
}

inline std::vector<float> elements(const Tensor& tensor) {
  return {tensor.span<float>().begin(), tensor.span<float>().end()};
}

}  // namespace muster::graph
