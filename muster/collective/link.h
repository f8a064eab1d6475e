// Link: a connection between this rank and one of another host, as this side sees it. It moves bytes in
// order, never waits, and knows nothing of frames and calls: those are a FrameStream's, which outlives its
// links.
//
// A new transport implements this interface, and has a line in make_link() and in link_choice.h.
//
// Threads: one at a time, but what says otherwise.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "muster/base/base.h"
#include "muster/collective/wait_list.h"
#include "muster/net/net.h"

namespace muster::collective {

class Link {
 public:
  Link() = default;
  virtual ~Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // As many bytes as go at once; 0 when none do. Receiving reports the end of the stream as Code::peer_lost.
  virtual Result<std::size_t> send_some(std::span<const iovec> pieces) = 0;
  virtual Result<std::size_t> receive_some(std::span<const iovec> pieces) = 0;

  // To be waited for. Any thread.
  virtual void add_to(WaitList& waits, Interest interest) const = 0;
  // After a wait has found that it ended: whether it broke, so that the other side may go on; else that had
  // closed it before, and has left. It tells once.
  virtual bool is_broken() = 0;

  // What was sent still arrives, and nothing more. Any thread.
  virtual void finish_sending() = 0;
  // After that: whether the other side's system has all of it, or will never have it. Any thread.
  virtual bool is_delivered() const = 0;
  // Ends it both ways; the other side reads the end of the stream, after what was sent. Any thread.
  virtual void close() = 0;
  // Ends it both ways, and waits of the other side are told. Any thread.
  virtual void reset() = 0;
  // Whether the certificate of the other side, if it has one, is still good. Any thread.
  virtual Result<> check_peer() const = 0;
};

// What moves the bytes of a connection. The caller offers it in its hello, the other side's answer decides.
enum class LinkKind : std::uint32_t { socket, ucx };

// The link that begins with a connection on which both sides have said who they are. One that cannot begin
// fails when it is used.
std::unique_ptr<Link> make_link(net::Socket connection, LinkKind kind);

}  // namespace muster::collective
