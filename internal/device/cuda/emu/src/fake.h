// What the stand-ins for libcuda, libnvrtc and libcublas share.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "watch.h"

#define API extern "C" __attribute__((visibility("default")))
typedef int Result;
enum {
	OK = 0,
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	NOT_INITIALIZED = 3,
	INVALID_DEVICE = 101,
	INVALID_CONTEXT = 201,
	NO_BINARY = 209,
	INVALID_HANDLE = 400,
	ALREADY_REGISTERED = 712,
	NOT_FOUND = 500,
	NOT_READY = 600,
	PEER_ENABLED = 704,
	LAUNCH_FAILED = 719,
	UNSUPPORTED = 801,
	CAPTURE_UNSUPPORTED = 900,
	CAPTURE_INVALIDATED = 901,
	CAPTURE_WRONG_THREAD = 908,
};

struct Stream;

// Settings are read when the first context of a process is made: environment variables EMU_...
struct Settings {
	int jitter, seed, order; // JITTER_US, SEED, ORDER; see kernel.h
	std::string headers;     // DIR: where kernel.h is
	std::string compiler;    // CXX
	std::string refuses;     // CAPTURE: what of capturing fails, begin, work or upload
	int lacks, fails;        // CONV_LACKS, CONV_FAILS: convolutions of so many filters
	int breaks, errs;        // CONV_BREAKS, CONV_ERRS: likewise, and it says it computes them
	long long room;          // CONV_ROOM: bytes that convolutions work in
	long long handle, first; // HANDLE, FIRST: bytes that a handle of cuBLAS takes, and what it
	                         // loads for the first product of a context
	bool choosy;             // CHOOSY: the order of cuBLAS's additions depends on sizes, addresses
	                         // modulo 256, and the workspace
	long long context, module, local; // CONTEXT, MODULE: bytes that a context and a module take;
	                                  // LOCAL: that a thread of any kernel has for itself
	int loses;               // LOSES: of how many terms sums are of which cuBLAS loses the last ones
	double hurry;            // HURRY: how much faster than the clock events' times pass
	long long pins;          // PINS: bytes of the host that can be pinned, 0 is all
	bool races;              // RACES: accesses are watched
	bool unbound;            // UNBOUND: no thread gets the context
};
extern Settings settings;

// Context is what a process has on a device: its memory, its streams, and an error of work that ran
// there, which leaves other devices' as they are. It is never deleted.
struct Context {
	int device;
	long long memory = 0, fail = 0; // MEM: bytes; FAIL: the number of the launch that fails, from 1
	int retained = 0;
	std::map<uintptr_t, size_t> dev; // live ranges
	long long used = 0;              // bytes
	bool loaded = false;             // what it keeps for libraries
	bool threads = false;            // what it keeps for threads of kernels
	int graphs = 0;                  // that are not destroyed
	std::vector<Stream *> streams;
	std::atomic<long long> launched{0}; // kernels
	std::set<Context *> reached;        // whose memory copies may read
	long long copied = 0, breaks = 0;   // copies from others; PEERFAIL: the number of the one that
	                                    // fails, from 1
	std::atomic<int> sticky{0};         // an error of work that ran
	std::string text;                   // of it
};
extern thread_local Context *current; // nullptr: none

// Node is work of a graph; kernel is what is launched, if that is what it is.
struct Node {
	std::function<void()> work;
	std::string kernel;
};
struct Graph {
	Context *of;
	std::vector<Node> nodes;
	bool broken = false;
	long long bytes = 0; // of device memory, once it is instantiated
};
extern thread_local Stream *capturing; // by this thread

struct Stream {
	Context *of;
	std::mutex m;
	std::condition_variable cv;
	std::deque<std::function<void()>> queue;
	bool busy = false, stop = false;
	int awaited = 0; // by so many threads that wait for all streams
	Graph *capture = nullptr; // what is given goes there
	std::mt19937 random;
	unsigned number;  // from 1
	emu::Clock clock; // of what it was given
	std::thread thread;

	Stream(Context *of, int number);
	void run();
	void wait();
};

// push queues work of a stream, or captures it.
Result push(Stream *s, std::function<void()> work);

// launch is push for a kernel.
Result launch(Stream *s, const std::string &kernel, std::function<void()> work);

// dated is work that a stream is given now.
std::function<void()> dated(Stream *s, std::function<void()> work);
// date is what has happened once all work that a stream was given is done; follows has a stream's
// next work, or that of the host, come after that.
emu::Clock date(Stream *s);
void follows(Stream *s, const emu::Clock &c);

// watched does work that touches what it says, or tells the watcher of itself, and is false if that
// must not be.
struct Touch {
	const void *p;
	size_t n;
	emu::Kind kind;
};
bool watched(const std::string &name, const std::string &args, const std::vector<Touch> &touches,
	const std::function<void()> &work);
// known and unknown say what memory is watched.
void known(uintptr_t p, size_t n, emu::Memory m);
void unknown(uintptr_t p);

// take is whether there were so many bytes of the device's memory; give gives them back.
bool take(long long bytes);
bool load(); // what a library loads at first
void give(Context *of, long long bytes);
// taken is what this process has of a device's memory; negative if it has no context there.
long long taken(int device);

// fault makes the current context unusable, as an error of work that runs does on a GPU.
void fault(int code, const std::string &why);

// on_device reports whether bytes are inside an allocation of the device's memory.
bool on_device(uintptr_t p, size_t n);

// usable is what every call of a context returns first.
Result usable();
#define CONTEXT \
	if (Result r = usable()) return r

// UNCAPTURED is CONTEXT for what a thread that captures may not do.
#define UNCAPTURED \
	CONTEXT; \
	if (capturing) return capturing->capture->broken = true, CAPTURE_UNSUPPORTED
