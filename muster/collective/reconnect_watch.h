// Watch over the reconnect acceptor while the rank computes: a thread that sleeps until a peer connects.
// During a call the call itself serves the acceptor, sooner.
#pragma once

#include <functional>
#include <thread>

#include "muster/base/base.h"
#include "muster/collective/reconnect_acceptor.h"
#include "muster/collective/wait_list.h"
#include "muster/net/net.h"

namespace muster::collective {

class ReconnectWatch {
 public:
  struct Duties {
    // Serves the acceptor and goes on with what others found broken, unless others are at it; whether there
    // may be more to do.
    std::function<Result<bool>()> attend;
    // What else there is to wake up for.
    std::function<void(WaitList&)> watch;
    // Once a second, during calls too: a revoked peer must go. None: no peer can be revoked.
    std::function<void()> check_peers = {};
  };
  // ReconnectAcceptor and signal are borrowed; the thread ends with the signal.
  ReconnectWatch(ReconnectAcceptor& acceptor, const net::StopSignal& stop, Duties duties);
  // The signal has been raised, or this is a forked child, which has no such thread.
  ~ReconnectWatch();
  ReconnectWatch(const ReconnectWatch&) = delete;
  ReconnectWatch& operator=(const ReconnectWatch&) = delete;

 private:
  void work();

  ReconnectAcceptor& acceptor_;
  const net::StopSignal& stop_;
  const Duties duties_;
  const std::uint32_t fork_count_ = net::fork_count();
  std::thread thread_;
};

}  // namespace muster::collective
