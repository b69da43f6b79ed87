// A stand-in for libnvrtc: the host's C++ compiler with kernel.h.
#include "fake.h"

#include <fstream>
#include <regex>
#include <sstream>
#include <unistd.h>

struct Program {
	std::string source, log, image;
};
enum { COMPILATION = 6 };

API int nvrtcVersion(int *major, int *minor) {
	*major = 13;
	*minor = 0;
	return 0;
}

API const char *nvrtcGetErrorString(int e) {
	return e == COMPILATION ? "NVRTC_ERROR_COMPILATION" : e ? "NVRTC_ERROR" : "NVRTC_SUCCESS";
}

API int nvrtcCreateProgram(Program **p, const char *source, const char *, int,
		const char *const *, const char *const *) {
	*p = new Program{source, "", ""};
	return 0;
}

API int nvrtcDestroyProgram(Program **p) {
	delete *p;
	*p = nullptr;
	return 0;
}

static std::string contents(const std::string &path) {
	std::ifstream f(path, std::ios::binary);
	std::stringstream s;
	s << f.rdbuf();
	return s.str();
}

// entries are the functions by which kernels of a source are launched.
static std::string entries(const std::string &source) {
	static const std::regex kernel(
		R"(__global__\s+void\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\()");
	std::string s;
	for (std::sregex_iterator it(source.begin(), source.end(), kernel), end; it != end; ++it)
		s += "EMU_KERNEL(" + (*it)[1].str() + ")\n";
	return s;
}

API int nvrtcCompileProgram(Program *p, int, const char *const *) {
	char dir[] = "/tmp/gomem-emu-XXXXXX";
	if (!mkdtemp(dir)) return 1;
	std::string base = std::string(dir) + "/kernels";
	std::ofstream(base + ".cpp") << "#include \"kernel.h\"\n#line 1 \"kernels\"\n" << p->source
		<< "\n" << entries(p->source);
	std::string command = settings.compiler + " -shared -fPIC -I'" + settings.headers + "' -o '" +
		base + ".so' '" + base + ".cpp' >'" + base + ".log' 2>&1";
	int rc = system(command.c_str());
	p->log = contents(base + ".log");
	std::string code = contents(base + ".so");
	uint64_t size = code.size();
	p->image = "EMUCUBIN" + std::string((char *)&size, 8) + code;
	for (const char *end : {".cpp", ".so", ".log"}) unlink((base + end).c_str());
	rmdir(dir);
	return rc ? COMPILATION : 0;
}

API int nvrtcGetProgramLogSize(Program *p, size_t *n) {
	*n = p->log.size() + 1;
	return 0;
}

API int nvrtcGetProgramLog(Program *p, char *b) {
	memcpy(b, p->log.c_str(), p->log.size() + 1);
	return 0;
}

API int nvrtcGetCUBINSize(Program *p, size_t *n) {
	*n = p->image.size();
	return 0;
}

API int nvrtcGetCUBIN(Program *p, char *b) {
	memcpy(b, p->image.data(), p->image.size());
	return 0;
}
