#include "muster/cluster/tls_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "muster/json/json.h"

namespace muster::cluster {
namespace {

using nlohmann::json;

constexpr int warning_days_max = 36'500;
constexpr std::size_t path_bytes_max = 4096;
constexpr std::size_t cipher_list_bytes_max = 8192;
constexpr std::size_t warnings_max = 16;
constexpr std::size_t shown_bytes_max = 64;

struct TextField {
  std::string_view name;
  std::string TlsConfig::*value;
  bool is_required = true;
  std::size_t size_bytes_max = path_bytes_max;
};
constexpr std::string_view days_name = "cert_expire_warning_time_in_day";
constexpr auto text_fields = std::to_array<TextField>({
    {"server_cert_path", &TlsConfig::server_cert_path},
    {"client_cert_path", &TlsConfig::client_cert_path},
    {"ca_cert_path", &TlsConfig::ca_cert_path},
    {"crl_path", &TlsConfig::crl_path, false},
    {"cipher_list", &TlsConfig::cipher_list, false, cipher_list_bytes_max},
});

std::vector<std::string_view> field_names() {
  std::vector<std::string_view> names;
  for (const TextField& field : text_fields) names.push_back(field.name);
  names.push_back(days_name);
  return names;
}

class Reader {
 public:
  Reader(const json& object, std::string_view name) : object_(object), name_(name) {}

  Result<TlsConfig> read() {
    TlsConfig config;
    for (const TextField& field : text_fields) MUSTER_TRY_VOID(read_text(field, config));
    MUSTER_TRY_VOID(read_days(config));
    warn_of_unknown_fields(config);
    return config;
  }

 private:
  tl::unexpected<Error> wrong(std::string_view field, std::string_view what) const {
    return fail(Code::invalid_argument, fmt::format("{}: '{}' {}", name_, field, what));
  }

  Result<> read_text(const TextField& field, TlsConfig& config) const {
    const auto found = object_.find(field.name);
    if (found == object_.end()) {
      if (field.is_required) return wrong(field.name, "is missing: it names a file");
      return {};
    }
    if (!found->is_string()) return wrong(field.name, fmt::format("is a text, not {}", found->type_name()));
    const auto& text = found->get_ref<const std::string&>();
    if (text.empty() && field.is_required) return wrong(field.name, "is empty: it names a file");
    if (text.size() > field.size_bytes_max)
      return wrong(field.name,
                   fmt::format("has {} bytes and may have {}", text.size(), field.size_bytes_max));
    if (text.find('\0') != std::string::npos) return wrong(field.name, "has a zero byte in it");
    config.*field.value = text;
    return {};
  }

  Result<> read_days(TlsConfig& config) const {
    const auto found = object_.find(days_name);
    if (found == object_.end()) return {};
    const bool is_whole = found->is_number_unsigned();
    if (!is_whole || found->get<std::uint64_t>() > warning_days_max)
      return wrong(days_name, fmt::format("is a whole number of days from 0 to {}", warning_days_max));
    config.cert_expire_warning_time_in_day = found->get<int>();
    return {};
  }

  void warn_of_unknown_fields(TlsConfig& config) const {
    const auto known = field_names();
    for (const auto& [field, value] : object_.items()) {
      if (std::find(known.begin(), known.end(), field) != known.end()) continue;
      if (config.warnings.size() == warnings_max) return;
      const auto meant = nearest_name(field, known);
      config.warnings.push_back(fmt::format(
          "{}: '{}' is no field of it and is not used; {}", name_, field.substr(0, shown_bytes_max),
          meant ? fmt::format("did you mean '{}'?", *meant)
                : fmt::format("its fields are {}", fmt::join(known, ", "))));
    }
  }

  const json& object_;
  std::string_view name_;
};

}  // namespace

Result<TlsConfig> parse_tls_config(std::string_view text, std::string_view name) {
  MUSTER_TRY(const json parsed, muster::json::parse(text, name, {.bytes = tls_config_bytes_max}));
  if (!parsed.is_object())
    return fail(
        Code::invalid_argument,
        fmt::format("{} is no JSON object, such as {{\"server_cert_path\": \"server.p12\", ...}}", name));
  return Reader(parsed, name).read();
}

}  // namespace muster::cluster
