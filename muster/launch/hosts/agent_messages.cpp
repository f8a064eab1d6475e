#include "muster/launch/hosts/agent_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster::launch::agent {
namespace {

constexpr std::size_t text_size_max = payload_size_max;
constexpr std::size_t words_max = 100'000;
constexpr std::size_t ports_max = 65'536;

// The frame's type of each alternative of Message, in their order.
constexpr std::array<std::uint16_t, std::variant_size_v<Message>> types = {
    0x0300, 0x0301, 0x0302, 0x0303, 0x0304, 0x0305, 0x0306,  // of the launcher
    0x0310, 0x0311, 0x0312, 0x0313, 0x0314, 0x0315, 0x0316, 0x0317, 0x0318};

struct Writer {
  net::ByteWriter& to;

  void texts(const std::vector<std::string>& list) {
    to.number(static_cast<std::uint32_t>(list.size()));
    for (const std::string& text : list) to.text(text);
  }
  void variables(const std::map<std::string, std::string>& table) {
    to.number(static_cast<std::uint32_t>(table.size()));
    for (const auto& [name, value] : table) {
      to.text(name);
      to.text(value);
    }
  }

  void operator()(const Setup& m) { to.text(m.folder); }
  void operator()(const Reserve& m) {
    to.number(m.count);
    to.number(m.min);
    to.number(m.max);
  }
  void operator()(const MakeFile& m) {
    to.text(m.path);
    to.text(m.contents);
    to.number(static_cast<std::uint8_t>(m.is_secret));
  }
  void operator()(const Start& m) {
    to.number(m.process);
    texts(m.arguments);
    variables(m.environment);
    texts(m.preload ? m.preload->modules : std::vector<std::string>());
    if (!m.preload) return;
    to.text(m.preload->origin);
    variables(m.preload->environment);
  }
  void operator()(const Signal& m) {
    to.number(m.process);
    to.number(m.number);
  }
  void operator()(const Heartbeat&) {}
  void operator()(const End&) {}
  void operator()(const Hello& m) {
    to.text(m.host);
    to.number(m.pid);
    to.text(m.run_folder);
  }
  void operator()(const Ports& m) {
    to.number(static_cast<std::uint32_t>(m.numbers.size()));
    for (const std::uint16_t port : m.numbers) to.number(port);
  }
  void operator()(const Started& m) {
    to.number(m.process);
    to.number(m.pid);
  }
  void operator()(const StartFailed& m) {
    to.number(m.process);
    to.text(m.message);
  }
  void operator()(const Output& m) {
    to.number(m.process);
    to.number(static_cast<std::uint8_t>(m.stream));
    to.text(m.bytes);
  }
  void operator()(const Ended& m) {
    to.number(m.process);
    to.number(m.wait_status);
  }
  void operator()(const Failed& m) { to.text(m.message); }
  void operator()(const Gone& m) { to.number(static_cast<std::uint8_t>(m.none_left)); }
  void operator()(const Note& m) { to.text(m.line); }
};

struct Reader {
  net::ByteReader& from;

  std::string text() { return from.text(text_size_max); }
  // For people, on the launcher's terminal.
  std::string words() { return std::string(cut(printable(text(), LineBreaks::kept), text_size_max)); }
  std::uint32_t number() { return from.number<std::uint32_t>(); }
  std::vector<std::string> texts() {
    std::vector<std::string> list;
    for (std::uint32_t left = from.count(words_max, 4); left > 0; --left) list.push_back(text());
    return list;
  }
  std::map<std::string, std::string> variables() {
    std::map<std::string, std::string> table;
    for (std::uint32_t left = from.count(words_max, 8); left > 0; --left) {
      std::string name = text();
      table[std::move(name)] = text();
    }
    return table;
  }

  void operator()(Setup& m) { m.folder = text(); }
  void operator()(Reserve& m) {
    m.count = number();
    m.min = from.number<std::uint16_t>();
    m.max = from.number<std::uint16_t>();
  }
  void operator()(MakeFile& m) {
    m.path = text();
    m.contents = text();
    m.is_secret = from.number<std::uint8_t>() != 0;
  }
  void operator()(Start& m) {
    m.process = number();
    m.arguments = texts();
    m.environment = variables();
    std::vector<std::string> modules = texts();
    if (modules.empty()) return;
    m.preload = Preload{.modules = std::move(modules), .origin = words()};
    m.preload->environment = variables();
  }
  void operator()(Signal& m) {
    m.process = number();
    m.number = number();
  }
  void operator()(Heartbeat&) {}
  void operator()(End&) {}
  void operator()(Hello& m) {
    m.host = words();
    m.pid = number();
    m.run_folder = text();
  }
  void operator()(Ports& m) {
    for (std::uint32_t left = from.count(ports_max, 2); left > 0; --left)
      m.numbers.push_back(from.number<std::uint16_t>());
  }
  void operator()(Started& m) {
    m.process = number();
    m.pid = number();
  }
  void operator()(StartFailed& m) {
    m.process = number();
    m.message = words();
  }
  void operator()(Output& m) {
    m.process = number();
    m.stream = from.number<std::uint8_t>() == 0 ? Stream::out : Stream::error;
    m.bytes = text();
  }
  void operator()(Ended& m) {
    m.process = number();
    m.wait_status = number();
  }
  void operator()(Failed& m) { m.message = words(); }
  void operator()(Gone& m) { m.none_left = from.number<std::uint8_t>() != 0; }
  void operator()(Note& m) { m.line = words(); }
};

// The alternative of that number, empty.
template <std::size_t... I>
Message empty_message(std::size_t index, std::index_sequence<I...>) {
  Message message;
  ((index == I ? static_cast<void>(message.emplace<I>()) : static_cast<void>(0)), ...);
  return message;
}

}  // namespace

std::string encode(const Message& message) {
  net::ByteWriter writer;
  std::visit(Writer{writer}, message);
  MUSTER_CHECK(writer.bytes().size() <= payload_size_max, "a message of an agent is too large");
  const auto bytes = net::encode_frame({.type = types[message.index()]}, writer.bytes());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<Message> decode(const net::Frame& frame) {
  const auto* const type = std::find(types.begin(), types.end(), frame.header.type);
  if (type == types.end())
    return fail(Code::corrupt, fmt::format("a message of the unknown type {:#06x}", frame.header.type));
  Message message = empty_message(static_cast<std::size_t>(type - types.begin()),
                                  std::make_index_sequence<std::variant_size_v<Message>>{});
  net::ByteReader reader(frame.payload);
  std::visit(Reader{reader}, message);
  MUSTER_TRY_VOID(reader.finish("a message between launcher and agent"));
  return message;
}

}  // namespace muster::launch::agent
