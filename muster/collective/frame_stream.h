// A stream of frames to and from one remote rank that outlives its connection: when that breaks while both
// ranks live, another takes its place, and each side goes on at the byte up to which the other has taken what
// was sent. Nothing is lost, nothing comes twice.
//
// What was sent stays borrowed, not copied, until the other side's next frames show that it was taken; a
// little that is left at the end of a call is copied. docs/adr/0017-links.md has the reasons.
//
// Threads: one at a time, but what says otherwise.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/collective/copies.h"
#include "muster/collective/frames.h"
#include "muster/collective/link.h"
#include "muster/collective/reconnect_acceptor.h"
#include "muster/net/net.h"

namespace muster::collective {

class FrameStream {
 public:
  FrameStream(std::uint32_t rank, Purpose purpose, std::unique_ptr<Link> link, ReconnectAcceptor& acceptor);
  // Without a link: it is made as one that broke is made again.
  FrameStream(std::uint32_t rank, Purpose purpose, ReconnectAcceptor& acceptor);

  std::uint32_t rank() const { return rank_; }
  const std::string& name() const { return name_; }  // "rank 2 (10.0.0.7:4000)"

  // ---- The stream

  // Frames that are to be sent; their payloads stay as they are until they are kept no more.
  void add(FrameType type, std::span<const std::byte> payload, const FrameSource& source);
  std::size_t queued_frames() const { return outgoing_.frames(); }
  // Whether all of them are.
  bool all_sent() const { return outgoing_.done() && replayed_ == list_begin_; }
  // Some bytes of them; whether any went. Receiving gives how many came. A connection that breaks is no
  // error.
  bool send_some();
  Result<std::size_t> receive_some(std::span<const iovec> pieces);

  // ---- What is kept

  // All frames are sent, and what was to come meanwhile has come. `heard`: some of it, so that the other side
  // must have taken all that was sent before these frames.
  void finish_step(bool heard);
  // Of what is kept: bytes; and what this side has taken since it last sent something. Both sides know both.
  std::size_t kept_bytes() const { return list_begin_ - kept_begin_; }
  std::size_t unanswered_bytes() const { return unanswered_bytes_; }
  // Of what was sent and taken since the beginning: before the frames at hand, and all.
  std::uint64_t step_begin() const { return list_begin_; }
  std::uint64_t received_bytes() const { return received_; }
  // The other side has said that it has taken the stream up to here.
  void forget_before(std::uint64_t position);
  // The borrowed bytes are about to change.
  void own_kept(Copies& copies);

  // ---- The connection

  bool is_whole() const { return !broken_since_; }
  // Sending has failed. There may still be something to read.
  bool send_failed() const { return send_error_.has_value(); }
  // Nothing more can be sent, and nothing more is to come: the connection is broken, or this is the reason.
  Result<> give_up_sending();
  // It is of no more use.
  void break_off(const Error& cause);
  // The system has found it reset. Whether the other side may go on; else it had closed it before, and has
  // left.
  bool is_reset_by_accident();
  // Goes on with replacing it, without waiting; whether something moved. It fails when the other side is
  // gone.
  Result<bool> mend();
  // The other side may have found it broken, or replaced it.
  Result<> look_at_news();
  // All of this at once, without receiving, while no call is made. Whether there is more to do.
  Result<bool> attend();
  // One entry for a connection that is whole, at most one else.
  void add_to(WaitList& waits, Interest interest) const;
  // The connection, to be told when it is reset. Any thread.
  void watch(WaitList& waits);
  TimePoint next_step() const;
  // What was sent still arrives, and nothing more. Any thread.
  void finish_sending();
  // After that: whether the other side's system has all of it, or will never have it.
  bool is_delivered();
  // The other side reads the end of the stream, and sends nothing more. Any thread.
  void close();
  // Tells the other side that this group has ended. Any thread.
  void reset();
  // Whether the certificate of the other side is still good. Any thread.
  Result<> check_peer();

 private:
  struct Kept {
    net::FrameHeaderBytes header;
    std::span<const std::byte> payload;
    Copies::Holder holder;  // of the payload, once it is copied
  };
  ReconnectAcceptor::Stream here() const;
  Result<> adopt(std::unique_ptr<Link> link, std::uint32_t generation, std::uint64_t taken_bytes);
  Result<> rewind(std::uint64_t taken_bytes);
  std::span<const iovec> rest_of_kept(std::array<iovec, FrameList::piece_limit>& storage) const;

  const std::uint32_t rank_;
  const Purpose purpose_;
  const std::string name_;
  ReconnectAcceptor& acceptor_;
  std::mutex replacing_;        // held while the link is another
  bool ended_ = false;          // guarded by it
  bool left_ = false;           // by this side, guarded by it
  bool is_closed_ = false;      // by some side, guarded by it: a reset is no news any more
  std::unique_ptr<Link> link_;  // null: none yet
  std::uint32_t generation_ = 0;

  FrameList outgoing_;
  std::vector<Kept> kept_;
  // Places in the stream of sent bytes: where what is kept begins, where the list at hand does, and up to
  // where the connection at hand has what is kept.
  std::uint64_t kept_begin_ = 0;
  std::uint64_t list_begin_ = 0;
  std::uint64_t replayed_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t received_before_ = 0;  // this step
  std::size_t unanswered_bytes_ = 0;

  std::optional<Error> send_error_;  // why sending failed: there may still be something to read
  std::optional<TimePoint> broken_since_;
  std::string cause_;
  std::optional<Reconnector> reconnector_;
  TimePoint next_retry_{};
};

}  // namespace muster::collective
