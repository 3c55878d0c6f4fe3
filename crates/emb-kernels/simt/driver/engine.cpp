// The scheduler of queued work.
#include "engine.h"

#include "faults.h"
#include "graph.h"
#include "memory.h"
#include "trace.h"

namespace driver {
namespace {

// After this long with nothing to run, a waiting thread tells what everybody waits for, once.
std::chrono::seconds stall() {
    static const auto the_stall = std::chrono::seconds(environment("SIMT_STALL_SECONDS", 10));
    return the_stall;
}

bool may_run(Stream& stream) {
    if (stream.busy || stream.queue.empty()) return false;
    Work& head = *stream.queue.front();
    if (head.wait && !head.wait->done) return false;
    if (head.device->status() != kOk && !head.ready) return true;  // is skipped
    return !head.ready || head.ready();
}

void run_work(Lock& lock, Stream* stream, const std::shared_ptr<Work>& work) {
    Device& device = *work->device;
    if (device.status() == kOk && work->run) {
        std::string why = refuse_work(*work);
        if (!why.empty()) {
            fail(device, kIllegalAddress, work->what + ": " + why);
        } else {
            if (!work->quiet) trace("run", stream, *work);
            ++state().executing;
            lock.unlock();
            running_work(work.get());
            int code = work->run();
            running_work(nullptr);
            lock.lock();
            --state().executing;
            if (code != kOk) fail(device, code, work->what + " failed");
        }
    } else if (!work->run && !work->quiet) {
        trace("run", stream, *work);
    }
    if (work->finished) work->finished();
    if (work->record) {
        work->record->at = Clock::now();
        work->record->done = true;
    }
    ++state().progress;
}

void collect_destroyed(const std::shared_ptr<Stream>& stream) {
    if (stream->destroyed && stream->queue.empty()) state().streams.erase(stream);
}

void tell_stall() {
    say("nothing can run; a device would wait for ever:");
    for (const auto& stream : state().streams) {
        if (stream->queue.empty()) continue;
        const Work& head = *stream->queue.front();
        std::string why = head.wait      ? "an event that is not done"
                          : head.waiting ? head.waiting()
                                         : "";
        say("  device %d stream %llu: %s waits for %s (%zu queued)", stream->device->ordinal,
            static_cast<unsigned long long>(stream->number), head.what.c_str(), why.c_str(),
            stream->queue.size());
    }
}

}  // namespace

uint64_t random_number() {
    uint64_t& x = state().random;
    if (x == 0)
        x = (0x9E3779B97F4A7C15ull ^ (environment("SIMT_SEED", 1) * 0xD1B54A32D192ED03ull)) | 1;
    // xorshift64: Marsaglia 2003, the triple (13, 7, 17).
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x >> 11;
}

void fail(Device& device, int code, const std::string& message) {
    say("device %d: %s", device.ordinal, message.c_str());
    if (!device.failed) device.failed = code;
}

bool step(Lock& lock) {
    std::vector<std::shared_ptr<Stream>> streams;
    for (const auto& stream : state().streams) {
        if (may_run(*stream)) streams.push_back(stream);
    }
    auto& loose = state().loose;
    const size_t choices = streams.size() + loose.size();
    if (choices == 0) return false;
    const size_t choice = choices == 1 ? 0 : random_number() % choices;
    if (choice < streams.size()) {
        std::shared_ptr<Stream> stream = streams[choice];
        std::shared_ptr<Work> work = stream->queue.front();
        stream->busy = true;
        run_work(lock, stream.get(), work);
        stream->queue.pop_front();
        stream->busy = false;
        collect_destroyed(stream);
    } else {
        std::shared_ptr<Work> work = loose[choice - streams.size()];
        loose.erase(loose.begin() + static_cast<ptrdiff_t>(choice - streams.size()));
        run_work(lock, nullptr, work);
    }
    state().changed.notify_all();
    return true;
}

void wait_until(Lock& lock, const std::function<bool()>& done) {
    auto since = Clock::now();
    uint64_t progress = state().progress;
    bool told = false;
    while (!done()) {
        if (step(lock)) continue;
        if (done()) break;
        state().changed.wait_for(lock, std::chrono::milliseconds(2));
        if (state().progress != progress || state().executing > 0) {
            progress = state().progress;
            since = Clock::now();
        }
        if (!told && Clock::now() - since > stall()) {
            told = true;
            tell_stall();
        }
    }
}

void run_what_may(Lock& lock) {
    while (step(lock)) {
    }
}

bool idle(const Device& device) {
    for (const auto& stream : state().streams) {
        if (stream->device == &device && !stream->queue.empty()) return false;
    }
    return true;
}

namespace {

void enqueue(const std::shared_ptr<Stream>& stream, std::shared_ptr<Work> work) {
    work->number = ++state().work_numbers;
    if (!work->device) work->device = stream->device;
    if (!work->quiet) trace("enqueue", stream.get(), *work);
    stream->queue.push_back(std::move(work));
    state().changed.notify_all();
}

void wait_quietly(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Record>& record) {
    auto work = std::make_shared<Work>();
    work->what = "order of the legacy stream";
    work->wait = record;
    work->quiet = true;
    enqueue(stream, std::move(work));
}

// The legacy stream runs after what blocking streams have queued, and they after it.
void order_with_legacy(Lock& lock, const std::shared_ptr<Stream>& stream) {
    const std::shared_ptr<Stream>& legacy = stream->device->legacy;
    if (stream != legacy) {
        if (stream->blocking() && !legacy->queue.empty()) wait_quietly(stream, mark(lock, legacy));
        return;
    }
    std::vector<std::shared_ptr<Stream>> others;
    for (const auto& other : state().streams) {
        if (other != legacy && other->device == stream->device && other->blocking() &&
            !other->queue.empty() && !other->capture) {
            others.push_back(other);
        }
    }
    for (const auto& other : others) wait_quietly(legacy, mark(lock, other));
}

}  // namespace

std::shared_ptr<Record> mark(Lock&, const std::shared_ptr<Stream>& stream) {
    auto work = std::make_shared<Work>();
    work->what = "mark";
    work->record = std::make_shared<Record>();
    work->quiet = true;
    auto record = work->record;
    enqueue(stream, std::move(work));
    return record;
}

int push(Lock& lock, const std::shared_ptr<Stream>& stream, std::shared_ptr<Work> work) {
    if (stream->capture) return capture_work(*stream, std::move(work));
    order_with_legacy(lock, stream);
    enqueue(stream, std::move(work));
    if (state().eager) run_what_may(lock);
    return stream->device->status();
}

}  // namespace driver
