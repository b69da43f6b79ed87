// What watches the memory that kernels, copies and libraries touch: every access is compared with
// those before it of the same byte. Of two by different threads, one of which writes, one must have
// happened before the other: within a block a barrier lies between them, between blocks of a
// launch nothing can, and between streams an event, or a wait of the host. What is read was
// written, and what is touched belongs to an operand where those are known.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace emu {

enum Kind { READ, WRITE, ATOMIC };

// Who is the thread of the current block that touches memory, and the barriers of its warp so far.
struct Who {
	unsigned thread, fences;
};

// Span is bytes of memory.
struct Span {
	uintptr_t lo, hi;
	bool has(uintptr_t p) const { return p >= lo && p < hi; }
};

// Watcher is what a kernel tells of itself as it runs; launches are told one after the other.
struct Watcher {
	std::string error; // the first, after which nothing more is looked for
	virtual void grid(Span fixed, Span dynamic) = 0; // a launch begins: where shared memory is
	virtual void block() = 0;                        // the next block begins
	virtual void barrier() = 0;                      // all threads of the block have met
	virtual bool touch(uintptr_t p, size_t n, Kind kind, Who who) = 0; // false is an error
};

// Clock is for every stream, the host's being 0, how much of its work has been done for sure.
typedef std::vector<unsigned> Clock;

inline void join(Clock &a, const Clock &b) {
	if (a.size() < b.size()) a.resize(b.size());
	for (size_t i = 0; i < b.size(); i++)
		if (b[i] > a[i]) a[i] = b[i];
}

// Work is what a stream does at once; its clock has its own number, too.
struct Work {
	unsigned stream = 0;
	Clock clock;
	std::string name;
	std::string args; // of a kernel: addresses among them name what an error is about
};

// watcher remembers all accesses. Before anything is touched its work is announced.
Watcher *watcher();
void begin(const Work &w);
bool touch(const void *p, size_t n, Kind kind); // by a copy or a library; false is an error

// own makes memory of the device known, or of the host, which is taken for written. Of guarded
// memory only what is granted may be touched.
enum Memory { DEVICE, HOST, GUARDED };
void own(uintptr_t p, size_t n, Memory m);
void disown(uintptr_t p);
void grant(uintptr_t p, size_t n, bool written);
void forget(uintptr_t p, size_t n); // what was written there counts no longer
void revoke(uintptr_t p);           // grants of guarded memory, and all that was written there

} // namespace emu
