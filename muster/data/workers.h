// Private: threads that share the work on one block.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace muster::data {

// Threads: one caller at a time. Destroying joins the helpers; nothing of theirs is running between calls.
class Workers {
 public:
  // `count` includes the caller. Helpers are started when there is work for them.
  explicit Workers(int count);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers();

  int count() const;
  // body(worker, index) once for each index in [0, count), spread over at most `workers_max` threads (0:
  // all); `worker` counts from 0 and is the same for all calls of one thread. Returns when all are done.
  void for_each(std::size_t count, int workers_max,
                const std::function<void(int worker, std::size_t index)>& body);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace muster::data
