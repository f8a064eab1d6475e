#include "muster/launch/dashboard/http_server.h"

#include <gmock/gmock.h>

namespace muster::launch {
namespace {
namespace http_server_test {

using ::testing::HasSubstr;

TEST(HttpRequest, IsReadWithItsQueryAndHeaders) {
  const auto request = parse_request(
      "GET /log?name=worker_0.log&find=a%20b%26+c&empty HTTP/1.1\r\nHost: localhost:80\r\nX-Two:  b "
      "\r\n\r\n");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->method, "GET");
  EXPECT_EQ(request->path, "/log");
  EXPECT_EQ(request->query.at("name"), "worker_0.log");
  EXPECT_EQ(request->query.at("find"), "a b& c");
  EXPECT_EQ(request->query.at("empty"), "");
  EXPECT_EQ(request->header("host"), "localhost:80");
  EXPECT_EQ(request->header("x-two"), "b");
  EXPECT_EQ(request->header("x-three"), "");
}

TEST(HttpRequest, ThatIsNoneIsRefused) {
  for (const char* const text : {"", "\r\n", "GET / HTTP/2\r\n\r\n", "GET\r\n\r\n", "GET x HTTP/1.1\r\n\r\n",
                                 "GET /%4 HTTP/1.1\r\n\r\n", "GET /%zz HTTP/1.1\r\n\r\n", "\x16\x03\x01"})
    EXPECT_FALSE(parse_request(text)) << text;
}

TEST(HttpServer, NamesAPortThatIsNone) {
  for (const char* const where : {"x", "99999", "10.0.0.5:", ":80", "-1"}) {
    const auto server = HttpServer::open(where);
    EXPECT_FALSE(server) << where;
  }
  EXPECT_THAT(HttpServer::open("x").error().message, HasSubstr("'x' is no port and no HOST:PORT"));
}

}  // namespace http_server_test
}  // namespace
}  // namespace muster::launch
