// Graphs: instantiation and launch.
#include "graph.h"

#include "engine.h"
#include "faults.h"
#include "memory.h"
#include "trace.h"

namespace driver {
namespace {

// A node that may run now, at random.
size_t pick(const Graph& graph, const std::vector<char>& done) {
    std::vector<size_t> candidates;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
        bool may = !done[i];
        for (size_t before : graph.nodes[i].after) may = may && done[before];
        if (may) candidates.push_back(i);
    }
    return candidates[candidates.size() == 1 ? 0 : random_number() % candidates.size()];
}

}  // namespace

int run_graph(const Graph& graph, Device& device) {
    std::vector<char> done(graph.nodes.size(), 0);
    for (size_t count = 0; count < graph.nodes.size(); ++count) {
        size_t node = 0;
        {
            Lock lock(state().mutex);
            node = pick(graph, done);
            const Work& work = *graph.nodes[node].work;
            std::string why = refuse_work(work);
            if (!why.empty()) {
                fail(device, kIllegalAddress, "graph: " + work.what + ": " + why);
                return kIllegalAddress;
            }
            trace("run", nullptr, work);
        }
        const Work& work = *graph.nodes[node].work;
        running_work(&work);
        if (int code = work.run ? work.run() : 0) return code;
        done[node] = 1;
    }
    return kOk;
}

namespace {

// An instantiated graph: the nodes as they were.
struct Executable {
    std::shared_ptr<const Graph> graph;
};
std::set<Executable*>& executables() {
    static auto* the_executables = new std::set<Executable*>;
    return *the_executables;
}

}  // namespace
}  // namespace driver

using namespace driver;

DRIVER_API int cuGraphCreate(Graph** graph, unsigned) {
    *graph = new Graph;
    return kOk;
}

DRIVER_API int cuGraphDestroy(Graph* graph) {
    delete graph;
    return kOk;
}

DRIVER_API int cuGraphGetNodes(Graph* graph, void** nodes, size_t* count) {
    if (nodes) {
        for (size_t i = 0; i < *count && i < graph->nodes.size(); ++i)
            nodes[i] = graph->nodes[i].work.get();
    }
    *count = graph->nodes.size();
    return kOk;
}

DRIVER_API int cuGraphInstantiateWithFlags(Executable** executable, Graph* graph,
                                           unsigned long long) {
    Entry entry = enter();
    if (!entry) return entry.status;
    if (!graph) return kInvalidValue;
    *executable = new Executable{std::make_shared<const Graph>(*graph)};
    executables().insert(*executable);
    return kOk;
}

DRIVER_API int cuGraphExecDestroy(Executable* executable) {
    Entry entry = enter_without_context();
    if (!entry) return entry.status;
    if (!executables().erase(executable)) return kInvalidHandle;
    delete executable;
    return kOk;
}

DRIVER_API int cuGraphUpload(Executable* executable, void* stream) {
    Entry entry = enter();
    if (!entry) return entry.status;
    return executables().count(executable) && find_stream(entry.device, stream) ? kOk
                                                                                : kInvalidHandle;
}

DRIVER_API int cuGraphLaunch(Executable* executable, void* handle) {
    Entry entry = enter();
    if (!entry) return entry.status;
    auto stream = find_stream(entry.device, handle);
    if (!stream || !executables().count(executable)) return kInvalidHandle;
    auto graph = executable->graph;
    Device* device = stream->device;
    auto work = std::make_shared<Work>();
    work->what = text("graph of %zu nodes", graph->nodes.size());
    work->run = [graph, device] { return run_graph(*graph, *device); };
    return push(entry.lock, stream, work);
}
