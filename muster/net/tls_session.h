// One side of one TLS connection as a machine of bytes: what came from the network goes in, what is to be
// sent comes out. No socket, no clock, no thread of its own. Private to net.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/base/base.h"
#include "muster/net/security.h"

struct ssl_st;
struct x509_store_ctx_st;
struct bio_st;

namespace muster::net {

// The kinds of record that TLS may begin with; no frame of Muster's begins so.
inline constexpr auto tls_alert_record = std::byte{0x15}, tls_handshake_record = std::byte{0x16};

enum class TlsSide { listener, connector };

class TlsSession {
 public:
  struct Options {
    TlsSide side = TlsSide::listener;
    std::string peer = {};                  // how errors name the other side
    std::optional<Identity> expected = {};  // none: any certificate that is believed
    bool serves_anyone = false;             // a listener that asks for no certificate
  };
  // Before a handshake is through, no more than this is read.
  static constexpr std::size_t handshake_size_limit_bytes = 64 << 10;

  // Fails where no peer can be trusted, since the revocation list cannot be used; a listener lets the
  // handshake come so far that the other side hears of it.
  static Result<std::unique_ptr<TlsSession>> create(std::shared_ptr<const Security> security,
                                                    Options options);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Bytes from the network, borrowed until the calls below have used them up.
  void set_input(std::span<const std::byte> bytes) { input_ = bytes; }
  std::size_t input_left_bytes() const { return input_.size(); }

  // Goes on with the handshake; true once it is through on this side. Failed calls leave an alert in the
  // output that tells the other side why; every later call fails likewise.
  Result<bool> shake_hands();
  bool is_open() const { return open_; }
  // As many plain bytes as the input holds; 0: more input is needed.
  Result<std::size_t> read(std::span<std::byte> bytes);
  // Makes ciphertext of all of them.
  Result<> write(std::span<const std::byte> bytes);
  // Tells the other side that no more will come.
  void finish();

  // Of what came in, what has not yet come out.
  std::size_t held_size_bytes() const { return held_size_bytes_; }
  // Ciphertext that is to be sent.
  std::span<const std::byte> output() const { return std::span(output_).subspan(output_begin_); }
  void sent(std::size_t size_bytes);
  std::vector<std::byte> take_output();

  // The other side began with one of our frames, in plain.
  bool spoke_plain() const { return spoke_plain_; }
  // What the other side's certificate says, once the handshake is through; null without certificates.
  const PeerNames* peer_names() const { return names_ ? &*names_ : nullptr; }
  // What a certificate says that was shown and refused: an unverified claim. Null: there was
  // none.
  const PeerNames* refused_names() const { return refused_names_ ? &*refused_names_ : nullptr; }
  // Whether the other side's certificate is still good, if another revocation list has come since.
  Result<> check_peer_again();

 private:
  TlsSession(std::shared_ptr<const Security> security, Options options);
  Result<> open_ssl();
  Result<> look_at_first_byte();
  Result<> check_open();
  tl::unexpected<Error> fail_with(Code code, std::string message);
  tl::unexpected<Error> fail_from(int result);
  std::string words_of_failure(unsigned long error) const;

  // Called by OpenSSL.
  friend struct TlsCallbacks;
  int read_input(char* data, int size);
  int write_output(const char* data, int size);
  int verify(int good, x509_store_ctx_st* context);
  int verify_one(int good, x509_store_ctx_st* context);

  std::shared_ptr<const Security> security_;
  Options options_;
  ssl_st* ssl_ = nullptr;
  std::uint64_t generation_ = 0;  // of the revocation list that the peer was checked against
  std::span<const std::byte> input_;
  std::vector<std::byte> output_;
  std::size_t output_begin_ = 0;
  std::size_t handshake_size_bytes_ = 0;
  std::size_t held_size_bytes_ = 0;
  bool started_ = false;
  bool open_ = false;
  bool spoke_plain_ = false;
  bool too_long_ = false;
  std::string verify_problem_;
  std::optional<PeerNames> names_;
  std::optional<PeerNames> refused_names_;
  std::optional<Error> distrust_;  // why no peer is trusted now, whatever it shows
  std::optional<Error> failure_;
};

}  // namespace muster::net
