#include "muster/launch/hosts/rendezvous_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace muster::launch {
namespace {

namespace message = rendezvous_message;
using nlohmann::json;

enum Type : std::uint16_t {
  type_report = 0x0320,
  type_refusal = 0x0321,
  type_roster = 0x0322,
  type_beat = 0x0323,
  type_ended = 0x0324,
};

constexpr std::size_t text_bytes_max = 4096;
constexpr std::size_t key_bytes_max = 1024;
constexpr std::size_t preset_bytes_max = 64;
constexpr std::size_t interface_bytes_max = 15;  // the kernel's own limit

bool consists_of(std::string_view text, std::string_view marks) {
  return std::ranges::all_of(text, [&](char c) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return is_letter || marks.find(c) != std::string_view::npos;
  });
}

// ---- Out --------------------------------------------------------------------------------------------------

json to_json(const HostReport& host) {
  return {{"index", host.index},         {"ports", host.ports},     {"host_key", host.host_key},
          {"interface", host.interface}, {"address", host.address}, {"sources", host.sources}};
}

std::pair<Type, json> describe(const message::Report& report) {
  return {type_report,
          {{"version", report.version},
           {"hosts", report.hosts},
           {"preset", report.preset},
           {"host", to_json(report.host)}}};
}
std::pair<Type, json> describe(const message::Refusal& refusal) {
  return {type_refusal, {{"reason", refusal.reason}}};
}
std::pair<Type, json> describe(const message::Roster& roster) {
  json hosts = json::array();
  for (const HostReport& host : roster.hosts) hosts.push_back(to_json(host));
  return {type_roster, {{"hosts", std::move(hosts)}}};
}
std::pair<Type, json> describe(const message::Beat&) { return {type_beat, json::object()}; }
std::pair<Type, json> describe(const message::Ended& ended) {
  return {type_ended, {{"exit_code", ended.exit_code}, {"reason", ended.reason}}};
}

// ---- In ---------------------------------------------------------------------------------------------------

tl::unexpected<Error> odd(std::string_view field, std::string_view why) {
  return fail(Code::corrupt, fmt::format("a message of the rendezvous has a wrong '{}': {}", field, why));
}

// The fields of an object. The first that is wrong sticks.
class Fields {
 public:
  explicit Fields(const json& object) : object_(object) {
    if (!object.is_object()) failure_ = odd("message", "it is no JSON object").value();
  }

  std::int64_t number(const char* name, std::int64_t min, std::int64_t max) {
    const json* found = find(name);
    if (found == nullptr) return 0;
    const bool fits = found->is_number_integer() && found->get<double>() >= static_cast<double>(min) &&
                      found->get<double>() <= static_cast<double>(max);
    if (!fits) wrong(name, fmt::format("it is no whole number from {} to {}", min, max));
    return fits ? found->get<std::int64_t>() : 0;
  }

  std::string text(const char* name, std::size_t bytes_max) {
    const json* found = find(name);
    if (found == nullptr) return {};
    if (!found->is_string() || found->get_ref<const std::string&>().size() > bytes_max) {
      wrong(name, fmt::format("it is no text of at most {} bytes", bytes_max));
      return {};
    }
    return std::string(cut(printable(found->get_ref<const std::string&>()), bytes_max));
  }

  const json& list(const char* name, std::size_t count_max) {
    static const json none = json::array();
    const json* found = find(name);
    if (found == nullptr) return none;
    if (found->is_array() && found->size() <= count_max) return *found;
    wrong(name, fmt::format("it is no list of at most {}", count_max));
    return none;
  }

  const json* find(const char* name) {
    if (failure_) return nullptr;
    const auto found = object_.find(name);
    if (found != object_.end()) return &*found;
    wrong(name, "it is missing");
    return nullptr;
  }

  void wrong(std::string_view name, std::string_view why) {
    if (!failure_) failure_ = odd(name, why).value();
  }

  Result<> finish() const { return failure_ ? Result<>(fail(*failure_)) : Result<>{}; }

 private:
  const json& object_;
  std::optional<Error> failure_ = {};
};

Result<HostReport> read_host(const json& object) {
  Fields fields(object);
  HostReport host{.index = fields.number("index", 0, rendezvous_hosts_max - 1),
                  .host_key = fields.text("host_key", key_bytes_max),
                  .interface = fields.text("interface", interface_bytes_max),
                  .address = fields.text("address", text_bytes_max)};
  for (const json& port : fields.list("ports", rendezvous_ports_max)) {
    const bool fits = port.is_number_unsigned() && port.get<std::uint64_t>() >= 1 &&
                      port.get<std::uint64_t>() <= std::numeric_limits<std::uint16_t>::max();
    if (!fits) return odd("ports", "a port is a whole number from 1 to 65535");
    host.ports.push_back(port.get<std::uint16_t>());
  }
  for (const json& source : fields.list("sources", rendezvous_sources_max)) {
    if (!source.is_string() || !net::parse_ip(source.get_ref<const std::string&>()))
      return odd("sources", "a source is an IP address");
    host.sources.push_back(source.get<std::string>());
  }
  // These go into files of ssh and into arguments.
  if (!host.host_key.empty() && !is_public_key(host.host_key))
    fields.wrong("host_key", "it is no public key");
  if (!consists_of(host.interface, "._-")) fields.wrong("interface", "it is no name of an interface");
  if (!host.address.empty() && !net::parse_ip(host.address)) fields.wrong("address", "it is no IP address");
  MUSTER_TRY_VOID(fields.finish());
  return host;
}

Result<RendezvousMessage> read_report(const json& object) {
  Fields fields(object);
  const std::int64_t version = fields.number("version", 0, std::numeric_limits<std::int32_t>::max());
  MUSTER_TRY_VOID(fields.finish());
  // Of another version only that is known: what stands in it is its own affair.
  if (version != rendezvous_version) return message::Report{.version = version};
  message::Report report{.hosts = fields.number("hosts", 1, rendezvous_hosts_max),
                         .preset = fields.text("preset", preset_bytes_max)};
  const json* host = fields.find("host");
  MUSTER_TRY_VOID(fields.finish());
  MUSTER_TRY(report.host, read_host(*host));
  return report;
}

Result<RendezvousMessage> read_roster(const json& object) {
  Fields fields(object);
  message::Roster roster;
  for (const json& entry : fields.list("hosts", rendezvous_hosts_max)) {
    MUSTER_TRY(HostReport host, read_host(entry));
    if (host.index != static_cast<std::int64_t>(roster.hosts.size()))
      return odd("hosts", "they are not in the order of their indices");
    roster.hosts.push_back(std::move(host));
  }
  MUSTER_TRY_VOID(fields.finish());
  return roster;
}

Result<RendezvousMessage> read_ended(const json& object) {
  Fields fields(object);
  message::Ended ended{.exit_code = static_cast<int>(fields.number("exit_code", 0, 255)),
                       .reason = fields.text("reason", text_bytes_max)};
  MUSTER_TRY_VOID(fields.finish());
  return ended;
}

Result<RendezvousMessage> read_refusal(const json& object) {
  Fields fields(object);
  message::Refusal refusal{.reason = fields.text("reason", text_bytes_max)};
  MUSTER_TRY_VOID(fields.finish());
  return refusal;
}

}  // namespace

bool is_public_key(std::string_view text) {
  const auto space = text.find(' ');
  if (space == std::string_view::npos || space == 0) return false;
  const std::string_view key = text.substr(space + 1);
  return key.size() >= 16 && consists_of(text.substr(0, space), "-@.") && consists_of(key, "+/=");
}

std::vector<std::byte> encode(const RendezvousMessage& message) {
  const auto [type, object] = std::visit([](const auto& m) { return describe(m); }, message);
  // A name of a host or a program may hold bytes that are no text.
  const std::string text = object.dump(-1, ' ', false, json::error_handler_t::replace);
  return net::encode_frame({.type = type}, std::as_bytes(std::span(text)));
}

Result<RendezvousMessage> decode_rendezvous_message(const net::Frame& frame) {
  const auto* text = reinterpret_cast<const char*>(frame.payload.data());
  const json object = json::parse(text, text + frame.payload.size(), nullptr, false);
  if (object.is_discarded()) return odd("message", "it is no JSON");
  switch (frame.header.type) {
    case type_report:
      return read_report(object);
    case type_refusal:
      return read_refusal(object);
    case type_roster:
      return read_roster(object);
    case type_beat:
      return message::Beat{};
    case type_ended:
      return read_ended(object);
    default:
      return fail(Code::corrupt,
                  fmt::format("a message of type 0x{:04x} is none of the rendezvous of a job's hosts",
                              frame.header.type));
  }
}

}  // namespace muster::launch
