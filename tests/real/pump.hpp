// Several transports in one thread: all are polled in turn until something holds.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "real/clock.hpp"
#include "real/tcp_transport.hpp"

namespace holdfast::testing {

using real::PeerLoss;
using real::TcpOptions;
using real::TcpTransport;

inline constexpr Version kPumpVersion{1, 2};

inline std::byte content(std::uint64_t seed, std::uint64_t offset) {
  std::uint64_t z = (offset / 8 + 1) * 0x9e3779b97f4a7c15U + seed;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  return static_cast<std::byte>((z >> (8 * (offset % 8))) & 0xffU);
}
inline std::vector<std::byte> content_bytes(std::uint64_t seed, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = content(seed, i);
  return bytes;
}

// Patience for machines on which a thread may not run for seconds; tests of silence have their own.
inline TcpOptions calm() {
  TcpOptions options;
  options.silence = seconds(120);
  options.handshake = seconds(60);
  return options;
}

// A transport, its memory and all events that it has told.
struct Party {
  Party(std::uint32_t worker, std::vector<std::byte> bytes, const TcpOptions& options = calm())
      : self(worker), memory(std::move(bytes)), transport(self, options) {
    region = transport.add_region(memory, Bytes(memory.size()));
  }

  void poll() {
    std::array<TransportEvent, 16> events;
    for (std::size_t n = transport.poll(events); n != 0; n = transport.poll(events)) {
      for (std::size_t i = 0; i < n; ++i) take(events[i]);
    }
  }
  [[nodiscard]] PeerId open(const Party& source) {
    return transport.open({source.self, {}, source.transport.address()}, 1);
  }
  Posted read(OpId id, PeerId peer, const Access& access, Piece piece,
              Time deadline = Time::never()) {
    const std::array<Piece, 1> pieces{piece};
    ReadRequest request;
    request.id = id;
    request.peer = peer;
    request.access = access;
    request.region = region;
    request.pieces = pieces;
    request.deadline = deadline;
    return transport.read(request);
  }
  [[nodiscard]] const ReadDone* done(OpId id) const {
    for (const ReadDone& event : reads) {
      if (event.id == id) return &event;
    }
    return nullptr;
  }
  [[nodiscard]] std::string status(OpId id) const {
    const ReadDone* event = done(id);
    return event == nullptr ? "open" : to_string(event->status);
  }

  WorkerId self;
  std::vector<std::byte> memory;
  TcpTransport transport;
  RegionId region;
  std::vector<ReadDone> reads;
  std::vector<MessageReceived> messages;
  std::vector<Revoked> revoked;
  std::vector<PeerLost> lost;

 private:
  void take(TransportEvent& event) {
    if (auto* read_done = std::get_if<ReadDone>(&event)) reads.push_back(*read_done);
    if (auto* message = std::get_if<MessageReceived>(&event)) messages.push_back(*message);
    if (auto* gone = std::get_if<Revoked>(&event)) revoked.push_back(*gone);
    if (auto* peer = std::get_if<PeerLost>(&event)) lost.push_back(*peer);
  }
};

// Polls the parties until `holds`; false after two minutes.
inline bool pump(const std::vector<Party*>& parties, const std::function<bool()>& holds) {
  const Time end = real::steady_now() + seconds(120);
  while (!holds()) {
    if (real::steady_now() > end) return false;
    for (Party* party : parties) party->poll();
    parties.front()->transport.wait(real::steady_now() + microseconds(50));
  }
  return true;
}

// For a length of time, whatever happens.
inline void pump_for(const std::vector<Party*>& parties, Time length) {
  const Time end = real::steady_now() + length;
  pump(parties, [&] { return real::steady_now() >= end; });
}

}  // namespace holdfast::testing
