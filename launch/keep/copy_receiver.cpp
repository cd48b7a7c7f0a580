#include "launch/keep/copy_receiver.hpp"

#include <utility>

#include "base/codec/codec.hpp"
#include "base/error.hpp"
#include "launch/keep/copy_frames.hpp"

namespace muster {

namespace {

constexpr duration sender_lost_after{15};
constexpr std::size_t largest_frame_bytes = wire::largest_piece_bytes + codec::least_bytes<wire::copy_frame> + sealing_bytes;

}  // namespace

std::string copy_intake::take(std::string_view frame) try {
    using kind = wire::copy_frame::kind;
    auto const one = wire::read_copy_frame(frame);
    if (!one) throw error(errc::invalid_data, "a frame is none of a copy");
    if (one->what == kind::head) {
        now_.reset();
        come_ = 0;
        store_ = one->for_neighbour ? &of_others_ : &own_;
        auto const part = static_cast<int>(std::min<std::uint64_t>(one->part, kept::most_parts));
        if (!one->for_neighbour && store_->has_owner(part)) throw error(errc::invalid_data, "the rank of a copy runs there");
        now_ = store_->begin({part, 0, one->number, one->step, one->size, one->sum, false, one->by});
        return wire::encode(wire::copy_frame{.what = kind::taken});
    }
    if (!now_) throw error(errc::invalid_data, "a piece of no copy");
    if (one->what == kind::piece) {
        store_->write(*now_, come_, std::as_bytes(std::span(one->bytes)));
        come_ += one->bytes.size();
        return wire::encode(wire::copy_frame{.what = kind::taken});
    }
    auto const now = *std::exchange(now_, std::nullopt);
    if (one->what != kind::end || come_ != now.bytes || !store_->finish(now))
        throw error(errc::invalid_data, "a copy has come incomplete or changed");
    return wire::encode(wire::copy_frame{.what = kind::kept});
} catch (error const& e) {
    now_.reset();
    std::string const why = e.what();
    return wire::encode(wire::copy_frame{.what = wire::copy_frame::kind::refused, .bytes = why});
}

copy_receiver::copy_receiver(event_loop& loop, std::size_t nodes, kept_store& own, kept_store& of_others)
    : loop_(loop),
      own_(own),
      of_others_(of_others),
      listener_(loop, nodes, sender_lost_after,
                [this](wire::hello const&, std::unique_ptr<frame_channel>& link) { on_arrival(link); }) {}

void copy_receiver::on_arrival(std::unique_ptr<frame_channel>& link) {
    auto const number = next_++;
    auto& one = senders_.emplace(number, sender{std::move(link), copy_intake(own_, of_others_)}).first->second;
    one.link->set_callbacks({[&one](std::string_view frame) { one.link->send(one.intake.take(frame)); },
                             [this, number](std::string const&) {
                                 loop_.after(duration(0), [this, number] { senders_.erase(number); });  // after its callback
                             }},
                            largest_frame_bytes);
}

}  // namespace muster
