#include "tests/sim/storage/fiber.h"

#include <utility>

#include "muster/base/base.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace muster::train::sim {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t stack_bytes = std::size_t{512} << 10;
#else
constexpr std::size_t stack_bytes = std::size_t{128} << 10;
#endif

thread_local Fiber* running = nullptr;
// Stacks that are free: a schedule makes dozens of fibers, one after the other.
thread_local std::vector<std::unique_ptr<std::byte[]>> free_stacks;

std::unique_ptr<std::byte[]> take_stack() {
  if (free_stacks.empty()) return std::make_unique_for_overwrite<std::byte[]>(stack_bytes);
  auto stack = std::move(free_stacks.back());
  free_stacks.pop_back();
  return stack;
}

}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), stack_(take_stack()) {
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack_.get();
  context_.uc_stack.ss_size = stack_bytes;
  context_.uc_link = nullptr;
  makecontext(&context_, &Fiber::enter, 0);
}

Fiber::~Fiber() {
  MUSTER_CHECK(is_done_, "a fiber is destroyed before its end");
  free_stacks.push_back(std::move(stack_));
}

Fiber* Fiber::current() { return running; }

void Fiber::switch_to(ucontext_t& from, ucontext_t& to, [[maybe_unused]] bool is_into) {
#if defined(__SANITIZE_ADDRESS__)
  void* mine = nullptr;
  if (is_into) {
    __sanitizer_start_switch_fiber(&mine, stack_.get(), stack_bytes);
    swapcontext(&from, &to);
    __sanitizer_finish_switch_fiber(mine, nullptr, nullptr);
  } else {
    __sanitizer_start_switch_fiber(is_done_ ? nullptr : &fake_stack_, caller_stack_, caller_stack_bytes_);
    swapcontext(&from, &to);
    __sanitizer_finish_switch_fiber(fake_stack_, &caller_stack_, &caller_stack_bytes_);
  }
#else
  swapcontext(&from, &to);
#endif
}

void Fiber::resume() {
  MUSTER_CHECK(!is_done_ && running != this, "a fiber that cannot go on");
  outer_ = std::exchange(running, this);
  switch_to(caller_, context_, true);
  running = outer_;
}

void Fiber::yield() {
  Fiber* const self = running;
  self->switch_to(self->context_, self->caller_, false);
}

void Fiber::enter() {
  Fiber* const self = running;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &self->caller_stack_, &self->caller_stack_bytes_);
#endif
  self->body_();
  self->is_done_ = true;
  self->switch_to(self->context_, self->caller_, false);
}

}  // namespace muster::train::sim
