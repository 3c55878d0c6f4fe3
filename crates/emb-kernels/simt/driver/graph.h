// Graphs: what streams capture, and how it is run again.
#pragma once

#include "state.h"

namespace driver {

struct Node {
    std::shared_ptr<Work> work;
    std::vector<size_t> after;  // nodes before this one
};

struct Graph {
    std::vector<Node> nodes;
};

// A capture that is under way, shared by the streams that joined it.
struct Capture {
    uint64_t number = 0;
    int mode = 0;
    std::shared_ptr<Stream> origin;
    std::thread::id thread;
    std::shared_ptr<Graph> graph = std::make_shared<Graph>();
    bool invalid = false;
};

// Appends work to the capture of the stream.
int capture_work(Stream& stream, std::shared_ptr<Work> work);
// A stream waits for an event that was recorded in a capture: it joins the capture.
int join_capture(const std::shared_ptr<Stream>& stream, const Event& event);
// A call that a capture forbids: status to return, and the capture becomes invalid.
int forbid_in_capture(const std::shared_ptr<Stream>& stream, const char* call);
// The same for calls of a thread that captures anything in a mode that is not relaxed.
int forbid_while_capturing(const char* call);

// Runs the nodes in a seeded random order that respects their edges.
int run_graph(const Graph& graph, Device& device);

}  // namespace driver
