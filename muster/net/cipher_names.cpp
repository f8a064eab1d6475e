#include "muster/net/cipher_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "muster/net/openssl_objects.h"

namespace muster::net {
namespace {

// Forward secrecy and authenticated encryption, the fastest first.
constexpr std::string_view own_tls_1_2 = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr std::string_view own_tls_1_3 =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
constexpr std::size_t list_size_max = 4096;

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const std::size_t end = list.find_first_of(":,;");
    std::string_view name = list.substr(0, end);
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (!name.empty()) names.emplace_back(name);
    list = end == std::string_view::npos ? std::string_view() : list.substr(end + 1);
  }
  return names;
}

bool is_tls_1_3(const std::string& name) { return name.starts_with("TLS_"); }

// Why a name cannot be used; nothing: it can.
std::optional<std::string> problem_of(const std::string& name) {
  const openssl::Context context(SSL_CTX_new(TLS_method()));
  SSL_CTX_set_security_level(context.get(), 0);  // a weak suite is worth another word than an unknown one
  const bool known = is_tls_1_3(name) ? SSL_CTX_set_ciphersuites(context.get(), name.c_str()) == 1
                                      : SSL_CTX_set_cipher_list(context.get(), name.c_str()) == 1;
  ERR_clear_error();
  const STACK_OF(SSL_CIPHER)* suites = SSL_CTX_get_ciphers(context.get());
  for (int i = 0; known && i < sk_SSL_CIPHER_num(suites); ++i) {
    const SSL_CIPHER* suite = sk_SSL_CIPHER_value(suites, i);
    if (name != SSL_CIPHER_get_name(suite)) continue;
    const int key = SSL_CIPHER_get_kx_nid(suite);
    const int authentication = SSL_CIPHER_get_auth_nid(suite);
    if (SSL_CIPHER_get_bits(suite, nullptr) < 112) return "it does not encrypt, or too weakly";
    if (authentication == NID_auth_null) return "it never asks for a certificate";
    if (authentication == NID_auth_psk || key == NID_kx_psk || key == NID_kx_rsa_psk ||
        key == NID_kx_ecdhe_psk || key == NID_kx_dhe_psk)
      return "it is made for shared keys, not for certificates";
    return std::nullopt;
  }
  return "OpenSSL has no cipher suite of this name";
}

}  // namespace

Result<CipherNames> read_cipher_names(std::string_view list) {
  if (list.size() > list_size_max)
    return fail(Code::invalid_argument, fmt::format("cipher_list has {} characters; at most {} are read",
                                                    list.size(), list_size_max));
  CipherNames read;
  const std::vector<std::string> names = split(list);
  for (const std::string& name : names) {
    if (const auto problem = problem_of(name)) {
      read.warnings.push_back(fmt::format("cipher_list: '{}' is left out: {}", name, *problem));
      continue;
    }
    std::string& suites = is_tls_1_3(name) ? read.tls_1_3 : read.tls_1_2;
    suites += (suites.empty() ? "" : ":") + name;
  }
  const bool has_none = read.tls_1_2.empty() && read.tls_1_3.empty();
  if (has_none && !names.empty())
    return fail(Code::invalid_argument,
                fmt::format("cipher_list '{}' names no cipher suite that can be used (e.g. "
                            "ECDHE-RSA-AES128-GCM-SHA256 or TLS_AES_128_GCM_SHA256, separated by colons): {}",
                            list.substr(0, 200), read.warnings.front()));
  if (read.tls_1_2.empty()) read.tls_1_2 = own_tls_1_2;
  if (read.tls_1_3.empty()) read.tls_1_3 = own_tls_1_3;
  return read;
}

}  // namespace muster::net
