// A stand-in for libnvrtc: the host's C++ compiler with kernel.h.
#include "fake.h"

#include <fstream>
#include <regex>
#include <sstream>
#include <unistd.h>

struct Program {
	std::string source, log, image;
};
enum { INVALID_OPTION = 5, COMPILATION = 6 };

API int nvrtcVersion(int *major, int *minor) {
	*major = 13;
	*minor = getenv("EMU_RACES") && *getenv("EMU_RACES"); // what is compiled is something else, then
	return 0;
}

API const char *nvrtcGetErrorString(int e) {
	return e == COMPILATION ? "NVRTC_ERROR_COMPILATION"
		: e == INVALID_OPTION ? "NVRTC_ERROR_INVALID_OPTION" : e ? "NVRTC_ERROR" : "NVRTC_SUCCESS";
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

// known are the architectures that are compiled for: EMU_ARCHS.
static std::vector<int> known() {
	const char *v = getenv("EMU_ARCHS");
	std::stringstream list(v && *v ? v : "80 90");
	std::vector<int> all;
	for (int x; list >> x;) all.push_back(x);
	return all;
}

API int nvrtcGetNumSupportedArchs(int *n) {
	*n = known().size();
	return 0;
}

API int nvrtcGetSupportedArchs(int *list) {
	for (int x : known()) *list++ = x;
	return 0;
}

API int nvrtcCompileProgram(Program *p, int n, const char *const *options) {
	static const std::regex wanted("--gpu-architecture=(sm|compute)_([0-9]+)");
	bool ptx = false, any = false;
	std::cmatch m;
	for (int i = 0; i < n; i++)
		if (std::regex_match(options[i], m, wanted)) {
			ptx = m[1] == "compute";
			for (int x : known()) any = any || x == atoi(m[2].str().c_str());
		}
	if (!any) {
		p->log = "nvrtc: error: invalid value for --gpu-architecture (-arch)";
		return INVALID_OPTION;
	}
	char dir[] = "/tmp/gomem-emu-XXXXXX";
	if (!mkdtemp(dir)) return 1;
	std::string base = std::string(dir) + "/kernels";
	std::ofstream(base + ".cpp") << "#include \"kernel.h\"\n#line 1 \"kernels\"\n" << p->source
		<< "\n" << entries(p->source);
	std::string out = " >>'" + base + ".log' 2>&1", from = base + ".cpp", command;
	if (settings.races) { // linked without what it is compiled with
		from = base + ".o";
		command = settings.compiler + " -c -fPIC '@" + settings.headers + "/race.flags' -I'" +
			settings.headers + "' -o '" + from + "' '" + base + ".cpp'" + out + " && ";
	}
	command += settings.compiler + " -shared -fPIC -I'" + settings.headers + "' -o '" + base +
		".so' '" + from + "'" + out;
	int rc = system(command.c_str());
	p->log = contents(base + ".log");
	std::string code = contents(base + ".so");
	uint64_t size = code.size();
	p->image = std::string(ptx ? "EMUPTX.." : "EMUCUBIN") + std::string((char *)&size, 8) + code;
	for (const char *end : {".cpp", ".o", ".so", ".log"}) unlink((base + end).c_str());
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

static bool of(Program *p, const char *kind) { return p->image.rfind(kind, 0) == 0; }

API int nvrtcGetCUBINSize(Program *p, size_t *n) {
	*n = of(p, "EMUCUBIN") ? p->image.size() : 0;
	return 0;
}

API int nvrtcGetPTXSize(Program *p, size_t *n) {
	*n = of(p, "EMUPTX") ? p->image.size() : 0;
	return 0;
}

API int nvrtcGetPTX(Program *p, char *b) {
	memcpy(b, p->image.data(), p->image.size());
	return 0;
}

API int nvrtcGetCUBIN(Program *p, char *b) {
	memcpy(b, p->image.data(), p->image.size());
	return 0;
}
