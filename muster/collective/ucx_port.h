// Port: one side of a connection that UCX makes. It moves numbered messages, and is all that Muster sees of
// UCX: what implements it is a library of its own (ucx/), loaded when a link over UCX is first wanted.
//
// Nothing here waits. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"

namespace muster::collective {

// A message on its way, or a flush: it stays where it is, and its bytes as they are, while it is under way.
struct UcxMessage {
  std::uint64_t number = 0;
  std::span<const std::byte> bytes = {};
  bool is_under_way = false;
};

// Who gets what a port receives, from inside of UcxPort::progress.
class UcxReceiver {
 public:
  UcxReceiver() = default;
  UcxReceiver(const UcxReceiver&) = delete;
  UcxReceiver& operator=(const UcxReceiver&) = delete;
  virtual ~UcxReceiver() = default;

  // True where the bytes are to stay where they are until UcxPort::release; only with `may_stay`.
  virtual bool take_data(std::uint64_t number, std::span<const std::byte> bytes, bool may_stay) = 0;
  virtual void take_credit(std::uint64_t number) = 0;
};

class UcxPort {
 public:
  enum class Kind : unsigned { data, credit };

  UcxPort() = default;
  UcxPort(const UcxPort&) = delete;
  UcxPort& operator=(const UcxPort&) = delete;
  // What is under way is given up, and no message is any more.
  virtual ~UcxPort() = default;

  // By which the other side's port connects to this one.
  virtual const std::vector<std::byte>& address() const = 0;
  virtual Result<> connect(std::span<const std::byte> address) = 0;

  // What may be under way without filling queues for whose room there is no event.
  virtual std::size_t queue_bytes() const = 0;
  // Once it is connected. Messages may overtake each other.
  virtual void send(Kind kind, UcxMessage& message) = 0;
  // Under way until all that was sent before has left this process, so that it arrives without it.
  virtual void flush(UcxMessage& flush) = 0;
  // Whether something moved.
  virtual bool progress() = 0;
  // Lets the descriptor become readable when there is something to do; false: there already is.
  virtual bool arm() = 0;
  virtual int fd() const = 0;
  virtual void release(const std::byte* bytes) = 0;
  // Why nothing moves any more.
  virtual const std::optional<Error>& failure() const = 0;
};

struct UcxLibrary {
  std::uint32_t version = 0;  // ucx_port_version of the headers that it was built with
  std::string name;           // "UCX 1.13.1"
  // The receiver is borrowed.
  Result<std::unique_ptr<UcxPort>> (*open)(UcxReceiver& receiver) = nullptr;
  // What UCX found and may use, its variables considered: "tcp/eth0", "rc_mlx5/mlx5_0:1".
  Result<std::vector<std::string>> (*devices)() = nullptr;
};
inline constexpr std::uint32_t ucx_port_version = 1;

}  // namespace muster::collective
