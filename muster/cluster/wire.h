// Messages as frames. Byte by byte: docs/formats/cluster.md. What comes from outside is checked whole before
// it becomes a Message, and its texts are made printable.
#pragma once

#include <cstddef>
#include <vector>

#include "muster/cluster/messages.h"
#include "muster/cluster/variables.h"
#include "muster/net/net.h"

namespace muster::cluster {

// The largest payloads: what a node may say, and what a scheduler may say (a roster of worker_num_max
// members).
inline constexpr std::uint64_t node_payload_limit_bytes = 64 << 10;
inline constexpr std::uint64_t scheduler_payload_limit_bytes = 16 << 20;

// The type of the first alternative of MessageBody; the others follow.
inline constexpr std::uint16_t message_type_first = 0x0100;

// The longest texts. Longer words for people are cut; longer names are refused.
inline constexpr std::size_t name_limit_bytes = 128;
inline constexpr std::size_t words_limit_bytes = 8 << 10;
inline constexpr std::size_t path_limit_bytes = 1 << 10;

// The filling of an Echo, the nodes of a Status (of which more are left out), and the doctors that meet.
inline constexpr std::size_t echo_limit_bytes = 32 << 10;
inline constexpr std::size_t status_nodes_max = worker_num_max;
inline constexpr std::size_t doctors_max = 64;
// The text of Stacks, and of how many processes they are told at once.
inline constexpr std::size_t stacks_limit_bytes = 32 << 10;
inline constexpr std::size_t stacks_processes_max = 64;

// A whole frame, header included.
std::vector<std::byte> encode_message(const Message& message);
Result<Message> decode_message(const net::Frame& frame);

}  // namespace muster::cluster
