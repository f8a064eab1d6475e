// Reconnector: connects again to a rank whose connection broke, until that rank answers, refuses, or has been
// unreachable for too long.
//
// A machine that never waits: no circle of ranks that call each other can block. Threads: one at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/collective/collective.h"
#include "muster/collective/hello.h"
#include "muster/collective/wait_list.h"
#include "muster/net/net.h"

namespace muster::collective {

// Where nothing answers for so long, the rank is gone.
inline constexpr Duration unreachable_longest = std::chrono::seconds(5);

class Reconnector {
 public:
  struct Target {
    Endpoint endpoint;
    std::string name;  // how errors call it
    std::shared_ptr<const net::Security> security = {};
  };
  struct Answer {
    net::Socket socket;
    Welcome welcome;
    std::uint32_t generation;  // of the hello that was answered
  };

  // Each try to resume has a generation of its own, from the one after that of `hello` on.
  // `clock` is borrowed.
  Reconnector(Target target, const Hello& hello, const Clock& clock);

  // Of the newest hello.
  std::uint32_t generation() const { return hello_.generation; }
  // Goes on as far as it can; nothing: there is no answer yet. It fails with Code::peer_lost when the other
  // side is gone or its group has ended, and with what it said when it refused.
  Result<std::optional<Answer>> step();
  // What to wait for before the next step: at most one entry.
  void add_to(WaitList& waits) const;
  // While it connects, the time may pass too.
  TimePoint next_step() const {
    return !socket_ ? next_try_ : stage_ == Stage::connecting ? give_up_at_ : TimePoint::max();
  }

 private:
  enum class Stage { connecting, securing, awaiting };
  Result<> begin();
  Result<bool> advance();
  Result<bool> hear_answer();
  // Whether there will be another try.
  Result<> fall_back(const Error& error);
  net::Address address() const { return {target_.endpoint.address, target_.endpoint.port}; }

  const Clock& clock_;
  Target target_;
  Hello hello_;
  TimePoint give_up_at_;
  TimePoint next_try_;
  TimePoint began_;  // the try at hand
  std::optional<net::Socket> socket_;
  Stage stage_ = Stage::connecting;
  std::vector<std::byte> answer_;
  Welcome welcome_;
};

}  // namespace muster::collective
