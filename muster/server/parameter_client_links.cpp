#include "muster/server/parameter_client_implementation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace muster::server {

void ParameterClient::Implementation::connect_closed() {
  const TimePoint now = options_.clock.now();
  for (std::uint32_t holder = 0; holder < holders_.count(); ++holder) {
    Link& link = links_[holder];
    if (!link.is_closed || now < link.next_attempt) continue;
    const std::uint32_t server = holders_.server(holder);
    link.connection.reset();
    link.is_closed = false;
    link.next_attempt = now + reconnect_pause;
    link.connection = net::Connection::connect(
        loop_, options_.servers[server],
        {.payload_size_bytes = batch_limit_bytes, .unsent_size_bytes = unsent_batches_limit_bytes},
        {.opened = [this, holder] { opened(holder); },
         .received = [this, holder](net::Frame frame) { received(holder, std::move(frame)); },
         .closed =
             [this, holder](const Error& error) {
               links_[holder].is_open = false;
               links_[holder].is_closed = true;
               links_[holder].trouble = error.message;
               links_[holder].memory.close();
               loop_.stop();
             }},
        options_.security ? options_.security(server) : net::ConnectionSecurity{});
  }
}

void ParameterClient::Implementation::opened(std::uint32_t holder) {
  links_[holder].is_open = true;
  links_[holder].trouble.clear();
  if (machine_.generation() == 0) return;
  send(machine_.retry(holder));
}

void ParameterClient::Implementation::received(std::uint32_t holder, net::Frame frame) {
  const auto heard = links_[holder].memory.hear(frame, options_.shared_from_bytes);
  if (!heard && !corrupt_) corrupt_ = heard.error();
  if (!heard || *heard) return;
  loop_.stop();  // a thread that waits looks whether that was it
  auto message = decode(holder, std::move(frame));
  if (!message) {
    if (!corrupt_) corrupt_ = message.error();
    return;
  }
  send(machine_.receive(holder, *message));
}

Result<ToWorker> ParameterClient::Implementation::decode(std::uint32_t holder, net::Frame frame) {
  switch (static_cast<FrameType>(frame.header.type & ~shared_bit)) {
    case FrameType::taken: {
      MUSTER_TRY(Taken taken, decode_taken(frame));
      return taken;
    }
    case FrameType::refusal: {
      MUSTER_TRY(Refusal refusal, decode_refusal(frame));
      return refusal;
    }
    case FrameType::rows:
    case FrameType::rows_early:
    case FrameType::rows_changed: {
      MUSTER_TRY(Rows rows, links_[holder].memory.rows_of(std::move(frame)));
      return rows;
    }
    case FrameType::saved: {
      MUSTER_TRY(SaveOutcome outcome, decode_save_outcome(frame));
      return Rows{.generation = frame.header.epoch,
                  .serial = frame.header.flags,
                  .body = std::make_shared<SaveOutcome>(std::move(outcome))};
    }
    default:
      return fail(Code::corrupt,
                  fmt::format("a parameter server has sent a frame of type {:#06x}", frame.header.type));
  }
}

void ParameterClient::Implementation::send(const ToServerMessages& messages) {
  for (const ToServerMessage& message : messages) send(message.holder, message.message);
}

// What is sent while there is no connection is lost: once there is one, hello brings everything that is
// missing.
void ParameterClient::Implementation::send(std::uint32_t holder, const ToServer& message) {
  if (!links_[holder].is_open) return;
  if (const auto* hello = std::get_if<Hello>(&message)) {
    send_frame(holder, FrameType::hello, {.flags = holders_.share(holder), .epoch = hello->generation},
               encode(*hello));
    for (std::uint32_t table = 0; table < specs_.size(); ++table) send_table(holder, table);
    return;
  }
  if (const auto* point = std::get_if<CommonPoint>(&message))
    return send_frame(holder, FrameType::common_point, {.epoch = point->generation}, encode(*point));
  if (const auto* leave = std::get_if<Leave>(&message))
    return send_frame(holder, FrameType::leave, {.epoch = leave->generation}, encode(*leave));
  net::FrameHeader header{.job_id = options_.job_id};
  Body body;
  if (const auto* pull = std::get_if<Pull>(&message)) {
    const bool saves = static_cast<const OutgoingBatch*>(pull->body.get())->saves();
    const FrameType pulls = pull->is_ahead ? FrameType::pull_ahead : FrameType::pull;
    header.type = static_cast<std::uint16_t>(saves ? FrameType::save : pulls);
    header.flags = pull->serial;
    header.epoch = pull->generation;
    header.sequence = pull->step;
    body = pull->body;
  } else {
    const auto& push = std::get<Push>(message);
    header.type = static_cast<std::uint16_t>(FrameType::push);
    header.epoch = push.generation;
    header.sequence = push.step;
    body = push.body;
  }
  send_batch(holder, header, *static_cast<const OutgoingBatch*>(body.get()));
}

void ParameterClient::Implementation::send_batch(std::uint32_t holder, const net::FrameHeader& header,
                                                 const OutgoingBatch& batch) {
  const auto shared_message = links_[holder].memory.put(
      {.batch = batch.payload(), .answer_bytes = batch.answer_bytes(), .serial = header.flags},
      [&](FrameType type, std::span<const std::byte> payload) { send_frame(holder, type, {}, payload); });
  if (!shared_message) return links_[holder].connection->send(batch.with(header));
  send_frame(holder, shared(static_cast<FrameType>(header.type)), header, encode(*shared_message));
}

void ParameterClient::Implementation::send_table(std::uint32_t holder, std::uint32_t table) {
  send_frame(holder, FrameType::table, {.epoch = machine_.generation()},
             encode(TableMessage{.worker = options_.worker, .table = table, .spec = specs_[table]}));
}

void ParameterClient::Implementation::send_frame(std::uint32_t holder, FrameType type,
                                                 const net::FrameHeader& header,
                                                 std::span<const std::byte> payload) {
  links_[holder].connection->send(make_frame(options_.job_id, type, header, payload));
}

std::string ParameterClient::Implementation::missing_servers() const {
  std::map<std::uint32_t, std::string> troubles;  // by server
  for (std::uint32_t holder = 0; holder < holders_.count(); ++holder)
    if (machine_.awaits(holder)) {
      std::string& trouble = troubles[holders_.server(holder)];
      if (trouble.empty()) trouble = links_[holder].trouble;
    }
  std::string text;
  for (const auto& [server, trouble] : troubles)
    text += fmt::format("{}{} at {}{}", text.empty() ? "" : ", ", server,
                        net::to_string(options_.servers[server]),
                        trouble.empty() ? "" : fmt::format(" ({})", trouble));
  return text;
}

void ParameterClient::Implementation::tell_awaited(bool is_waiting) {
  std::set<std::uint32_t> servers;
  for (std::uint32_t holder = 0; is_waiting && holder < holders_.count(); ++holder)
    if (machine_.lacks_answer(holder)) servers.insert(holders_.server(holder));
  const std::pair awaited(servers.empty() ? 0 : *servers.begin(), static_cast<std::uint32_t>(servers.size()));
  if (options_.awaits && std::exchange(told_, awaited) != awaited)
    options_.awaits(awaited.first, awaited.second);
}

}  // namespace muster::server
