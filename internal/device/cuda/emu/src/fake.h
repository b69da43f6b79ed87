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
#include <string>
#include <thread>
#include <vector>

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
	LAUNCH_FAILED = 719,
	UNSUPPORTED = 801,
	CAPTURE_UNSUPPORTED = 900,
	CAPTURE_INVALIDATED = 901,
	CAPTURE_WRONG_THREAD = 908,
};

struct Stream;

// Settings are read when a context is made: environment variables EMU_...
struct Settings {
	long long memory;        // MEM: bytes of device memory
	int jitter, seed, order; // JITTER_US, SEED, ORDER; see kernel.h
	long long fail;          // FAIL: the number of the launch that fails as it runs, from 1
	std::string headers;     // DIR: where kernel.h is
	std::string compiler;    // CXX
	std::string refuses;     // CAPTURE: what of capturing fails, begin, work or upload
	int lacks, fails;        // CONV_LACKS, CONV_FAILS: convolutions of so many filters
	long long handle, first; // HANDLE, FIRST: bytes that a handle of cuBLAS takes, and what it
	                         // loads for the first product of a context
	double hurry;            // HURRY: how much faster than the clock events' times pass
	long long pins;          // PINS: bytes of the host that can be pinned, 0 is all
};
extern Settings settings;

// Node is work of a graph; kernel is what is launched, if that is what it is.
struct Node {
	std::function<void()> work;
	std::string kernel;
};
struct Graph {
	std::vector<Node> nodes;
	bool broken = false;
	long long bytes = 0; // of device memory, once it is instantiated
};
extern thread_local Stream *capturing; // by this thread
int graphs_left();

struct Stream {
	std::mutex m;
	std::condition_variable cv;
	std::deque<std::function<void()>> queue;
	bool busy = false, stop = false;
	Graph *capture = nullptr; // what is given goes there
	std::mt19937 random;
	std::thread thread;

	explicit Stream(int number);
	void run();
	void wait();
};

// push queues work of a stream, or captures it.
Result push(Stream *s, std::function<void()> work);

// launch is push for a kernel.
Result launch(Stream *s, const std::string &kernel, std::function<void()> work);

// take is whether there were so many bytes of device memory; give gives them back.
bool take(long long bytes);
bool load(); // what a library loads at first
void give(long long bytes);

// fault makes the context unusable, as an error of work that runs does on a GPU.
void fault(int code, const std::string &why);

// on_device reports whether bytes are inside an allocation of device memory.
bool on_device(uintptr_t p, size_t n);

// usable is what every call of a context returns first.
Result usable();
#define CONTEXT \
	if (Result r = usable()) return r

// UNCAPTURED is CONTEXT for what a thread that captures may not do.
#define UNCAPTURED \
	CONTEXT; \
	if (capturing) return capturing->capture->broken = true, CAPTURE_UNSUPPORTED
