// What the parts of local runs cost, each beside what the machine can do at that moment: an
// iteration also times a plain memcpy and a plain copy through a loopback socket of as many bytes,
// and reports the ratios (of_memcpy, of_socket: above 1 is faster than that).
#include <benchmark/benchmark.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/engine/digest.hpp"
#include "real/clock.hpp"
#include "real/socket.hpp"
#include "real/tcp_transport.hpp"
#include "real/weight_bytes.hpp"

namespace holdfast::real {
namespace {

constexpr std::size_t kBytes = std::size_t{64} << 20;
constexpr std::size_t kPortion = 256 * 1024;

std::vector<std::byte>& source_bytes() {
  static std::vector<std::byte> bytes(kBytes, std::byte{7});
  return bytes;
}
std::vector<std::byte>& target_bytes() {
  static std::vector<std::byte> bytes(kBytes, std::byte{1});
  return bytes;
}

double copy_memory() {
  const Time start = steady_now();
  std::memcpy(target_bytes().data(), source_bytes().data(), kBytes);
  benchmark::ClobberMemory();
  return (steady_now() - start).seconds();
}

// Two threads, one connection, blocking calls.
class SocketCopy {
 public:
  SocketCopy() {
    const Descriptor listener = listen_on("127.0.0.1:0", false);
    const SocketAddress address = bound_address(listener);
    in_ = Descriptor(::socket(AF_INET, SOCK_STREAM, 0));
    const auto* name = reinterpret_cast<const sockaddr*>(&address.storage);
    if (::connect(in_.get(), name, address.length) != 0) throw std::runtime_error("connect");
    wait_readable(listener.get(), seconds(10));
    out_ = Descriptor(::accept(listener.get(), nullptr, nullptr));
  }
  double copy() {
    const Time start = steady_now();
    std::thread sender([&] {
      for (std::size_t at = 0; at < kBytes;) {
        const ssize_t n = ::send(in_.get(), source_bytes().data() + at,
                                 std::min(kPortion, kBytes - at), MSG_NOSIGNAL);
        if (n <= 0) return;
        at += static_cast<std::size_t>(n);
      }
    });
    for (std::size_t at = 0; at < kBytes;) {
      const ssize_t n =
          ::recv(out_.get(), target_bytes().data() + at, std::min(kPortion, kBytes - at), 0);
      if (n <= 0) break;
      at += static_cast<std::size_t>(n);
    }
    sender.join();
    return (steady_now() - start).seconds();
  }

 private:
  Descriptor in_;
  Descriptor out_;
};

// Reads `total` bytes in reads of 4 MiB, all posted at once where the window lets them.
void read_all(TcpTransport& transport, PeerId peer, const Access& access, RegionId region,
              std::size_t total) {
  constexpr std::size_t kRead = std::size_t{4} << 20;
  std::size_t posted = 0;
  std::size_t done = 0;
  std::array<TransportEvent, 16> events;
  while (done < total) {
    for (; posted < total; posted += kRead) {
      const std::array<Piece, 1> pieces{Piece{posted, posted, kRead}};
      ReadRequest request;
      request.id = posted;
      request.peer = peer;
      request.access = access;
      request.region = region;
      request.pieces = pieces;
      if (transport.read(request) != Posted::Posted) break;
    }
    transport.wait(transport.now() + seconds(10));
    const std::size_t n = transport.poll(events);
    for (std::size_t i = 0; i < n; ++i) {
      const auto* read = std::get_if<ReadDone>(&events[i]);
      if (read == nullptr || read->status != ReadStatus::Ok) throw std::runtime_error("read");
      done += kRead;
    }
  }
}

struct Reader {
  explicit Reader(std::uint32_t worker) : transport(WorkerId(worker)), memory(kBytes) {
    region = transport.add_region(memory, Bytes(kBytes));
  }
  TcpTransport transport;
  std::vector<std::byte> memory;
  RegionId region;
  Access access;
  PeerId peer;
};

void report(benchmark::State& state, double own, double memory, double socket,
            std::size_t iteration_bytes) {
  const auto bytes = static_cast<double>(iteration_bytes) * static_cast<double>(state.iterations());
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
  const double plain = static_cast<double>(kBytes) * static_cast<double>(state.iterations());
  const double rate = bytes / own;
  state.counters["of_memcpy"] = rate / (plain / memory);
  if (socket > 0) state.counters["of_socket"] = rate / (plain / socket);
}

// One source, so many readers, a thread each; all of them together read 64 MiB.
void tcp_readers(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0));
  TcpTransport source(WorkerId(1000U));
  const RegionId region = source.add_region(source_bytes(), Bytes(kBytes));
  std::vector<std::unique_ptr<Reader>> readers;
  for (std::uint32_t r = 0; r < count; ++r) {
    readers.push_back(std::make_unique<Reader>(r));
    Reader& reader = *readers.back();
    reader.access = source.allow(WorkerId(r), {1, 1}, region);
    reader.peer = reader.transport.open({WorkerId(1000U), {}, source.address()}, 1);
  }
  std::atomic<bool> stop{false};
  std::thread serving([&] {
    std::array<TransportEvent, 16> events;
    while (!stop) {
      source.wait(source.now() + milliseconds(100));
      while (source.poll(events) != 0) {
      }
    }
  });
  SocketCopy socket;
  double own = 0;
  double plain_memory = 0;
  double plain_socket = 0;
  bool first = true;
  for (auto _ : state) {
    const auto run = [&] {
      std::vector<std::thread> threads;
      for (const auto& reader : readers) {
        threads.emplace_back([&reader, count] {
          read_all(reader->transport, reader->peer, reader->access, reader->region, kBytes / count);
        });
      }
      for (std::thread& thread : threads) thread.join();
    };
    if (first) run();  // connects, touches the memory
    first = false;
    const Time start = steady_now();
    run();
    const double seconds = (steady_now() - start).seconds();
    state.SetIterationTime(seconds);
    own += seconds;
    plain_memory += copy_memory();
    plain_socket += socket.copy();
  }
  stop = true;
  source.wake_up().raise();
  serving.join();
  report(state, own, plain_memory, plain_socket, kBytes);
}
BENCHMARK(tcp_readers)->Arg(1)->Arg(8)->UseManualTime()->Unit(benchmark::kMillisecond);

template <class Work>
void beside_memcpy(benchmark::State& state, const Work& work) {
  double own = 0;
  double plain = 0;
  for (auto _ : state) {
    const Time start = steady_now();
    work();
    const double seconds = (steady_now() - start).seconds();
    state.SetIterationTime(seconds);
    own += seconds;
    plain += copy_memory();
  }
  report(state, own, plain, 0, kBytes);
}

Manifest one_tensor() {
  return Manifest("m", {{"a", DType::U8, {kBytes}}});
}

void weights_fill(benchmark::State& state) {
  const WeightBytes bytes(one_tensor(), {1, 1});
  beside_memcpy(state, [&] { bytes.fill(0, 0, target_bytes()); });
}
BENCHMARK(weights_fill)->UseManualTime()->Unit(benchmark::kMillisecond);

void weights_check(benchmark::State& state) {
  const WeightBytes bytes(one_tensor(), {1, 1});
  std::vector<std::byte> memory(kBytes);
  bytes.fill(0, 0, memory);
  beside_memcpy(state, [&] {
    if (bytes.first_wrong(0, 0, memory)) throw std::runtime_error("wrong byte");
  });
}
BENCHMARK(weights_check)->UseManualTime()->Unit(benchmark::kMillisecond);

void digest(benchmark::State& state) {
  beside_memcpy(state, [] { benchmark::DoNotOptimize(block_digest(source_bytes())); });
}
BENCHMARK(digest)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace holdfast::real

BENCHMARK_MAIN();
