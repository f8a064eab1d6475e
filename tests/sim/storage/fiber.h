// Threads that run one at a time and change places only where they say so: a simulated process waits in the
// middle of a function, and an order drawn from a seed decides who goes on.
#pragma once

#include <ucontext.h>

#include <functional>
#include <memory>
#include <vector>

namespace muster::train::sim {

// Belongs to the thread that made it. To be run to its end before it is destroyed.
class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  // Until it yields or ends. Not from within itself.
  void resume();
  bool is_done() const { return is_done_; }

  // Of the one that runs: back to whoever resumed it.
  static void yield();
  // Null outside of all.
  static Fiber* current();

 private:
  static void enter();
  void switch_to(ucontext_t& from, ucontext_t& to, bool is_into);

  std::function<void()> body_;
  std::unique_ptr<std::byte[]> stack_;
  ucontext_t context_ = {};
  ucontext_t caller_ = {};
  Fiber* outer_ = nullptr;
  bool is_done_ = false;
  void* fake_stack_ = nullptr;  // of the address sanitizer
  const void* caller_stack_ = nullptr;
  std::size_t caller_stack_bytes_ = 0;
};

}  // namespace muster::train::sim
