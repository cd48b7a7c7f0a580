// The module _muster_data: muster's datasets, samplers and loaders (io/), by CPython's limited API from 3.9 on. It is apart from _muster_native since it needs HDF5, and
// with it MPI. What blocks runs without the GIL. One thread at a time uses a dataset (and no other dataset meanwhile: HDF5 has one lock) or a loader; a sampler
// may be used by any number of them. Only loader(shared=True) is collective: otherwise the caller says which rank this is.
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "io/dataset/dataset.hpp"
#include "io/loader/loader.hpp"
#include "io/loader/sampler.hpp"
#include "pmix/identity.hpp"
#include "pmix/wait_page.hpp"

namespace {

using namespace muster;

using number = unsigned long long;  // of Python's format "K"

struct feed {
    loader from;
    std::optional<loader::epoch_range> epoch = {};
    std::optional<loader::iterator> at = {};
};

/// Holds what Python owns; freed with the last reference, in the process that made it: a fork has neither its threads nor its locks.
template <typename T>
struct owner {
    PyObject_HEAD
    T* made;
    unsigned made_after_forks;
    PyObject* weak_references;

    static inline PyTypeObject* type = nullptr;
};

PyObject* error_classes;  // code -> class, filled by muster.data
unsigned forks;

/// An exception of Python's that is set already.
struct python_error {};

/// Does the work while other threads may run Python. When Python ends, it ends the thread of a daemon that comes back here, by unwinding its stack: nothing
/// on the way may be noexcept, or catch that.
template <typename Work>
void without_gil(Work&& work) {
    std::exception_ptr fault;
    PyThreadState* const state = PyEval_SaveThread();
    try {
        work();
    } catch (...) {
        fault = std::current_exception();
    }
    PyEval_RestoreThread(state);
    if (fault) std::rethrow_exception(fault);
}

/// Returns the code by which muster.data.errors knows its class.
int code_of(errc code) noexcept {
    switch (code) {
        case errc::usage:
        case errc::config:
        case errc::parse: return 2;
        case errc::unavailable: return 5;
        case errc::system:
        case errc::io: return 6;
        case errc::library: return 7;
        case errc::not_found: return 9;
        case errc::invalid_data: return 10;
        default: return 8;
    }
}

/// Sets an exception of the class of that code.
void set_error(int code, char const* message) {
    PyObject* const key = PyLong_FromLong(code);
    if (key == nullptr) return;
    PyObject* const of_code = PyDict_GetItemWithError(error_classes, key);
    Py_DECREF(key);
    PyObject* const text = PyUnicode_DecodeUTF8(message, static_cast<Py_ssize_t>(std::strlen(message)), "replace");
    if (text == nullptr) return;
    PyErr_SetObject(of_code == nullptr ? PyExc_RuntimeError : of_code, text);
    Py_DECREF(text);
}

/// Returns what `body` returns; null with an exception of Python's where it throws.
template <typename Body>
PyObject* guarded(Body&& body) {
    try {
        return body();
    } catch (python_error const&) {
    } catch (error const& problem) {
        set_error(code_of(problem.code()), problem.what());
    } catch (std::bad_alloc const&) {
        set_error(6, "out of memory");
    } catch (std::exception const& problem) {
        set_error(8, problem.what());
    }
    return nullptr;
}

template <typename... To>
void parse(PyObject* given, char const* format, To... to) {
    if (!PyArg_ParseTuple(given, format, to...)) throw python_error();
}

PyObject* text_or_none(std::string const* text) {
    if (text == nullptr) Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(text->data(), static_cast<Py_ssize_t>(text->size()), "replace");
}

template <typename T>
PyObject* own(std::unique_ptr<T> made) {
    auto* const type = owner<T>::type;
    auto* const self = reinterpret_cast<owner<T>*>(reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc))(type, 0));
    if (self == nullptr) return nullptr;
    self->made = made.release();
    self->made_after_forks = forks;
    return reinterpret_cast<PyObject*>(self);
}

/// Gives Python what `make` makes, meanwhile without the GIL.
template <typename Make>
PyObject* own_made(Make&& make) {
    decltype(make()) made;
    without_gil([&] { made = make(); });
    return own(std::move(made));
}

/// Does the work without the GIL, and returns None.
template <typename Work>
PyObject* done(Work&& work) {
    without_gil(work);
    Py_RETURN_NONE;
}

template <typename T>
void release(PyObject* self) {
    auto* const held = reinterpret_cast<owner<T>*>(self);
    T* const made = std::exchange(held->made, nullptr);
    if (made == nullptr || held->made_after_forks != forks) return;
    without_gil([&] { delete made; });
}

template <typename T>
void drop(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    auto const give_back = reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free));
    if (reinterpret_cast<owner<T>*>(self)->weak_references != nullptr) PyObject_ClearWeakRefs(self);
    release<T>(self);
    give_back(self);
    Py_DECREF(type);
}

template <typename T>
T& made_of(PyObject* self) {
    T* const made = reinterpret_cast<owner<T>*>(self)->made;
    if (made == nullptr) {
        PyErr_SetString(PyExc_ValueError, "this was closed");
        throw python_error();
    }
    return *made;
}

/// Makes a method of a function of (what Python owns, its argument or null).
template <typename T, PyObject* (*Function)(T&, PyObject*)>
PyObject* method(PyObject* self, PyObject* given) {
    return guarded([&] { return Function(made_of<T>(self), given); });
}

// ------------------------------------------------------------------------------------------------ datasets

PyObject* open_data(PyObject*, PyObject* given) {
    return guarded([&] {
        char const *path = nullptr, *split = nullptr;
        parse(given, "ys", &path, &split);
        return own_made([&] { return std::make_unique<dataset>(dataset::open(path, split)); });
    });
}

PyObject* describe(dataset& data, PyObject*) {
    auto const& info = data.info();
    auto const shape = data.shape();
    return Py_BuildValue("{s:K,s:(KKK),s:K,s:K,s:K,s:K,s:K,s:K,s:i,s:i,s:i}", "samples", number(data.size()), "shape",
                         number(shape.channels), number(shape.height), number(shape.width), "sample_bytes",
                         number(data.image_bytes()), "label_bytes", number(data.label_bytes()), "classes", number(data.classes()),
                         "image_offset", number(info.image_offset.value_or(0)), "label_offset",
                         number(info.label_offset.value_or(0)), "class_names", number(info.class_names.size()), "type",
                         static_cast<int>(info.type), "label_type", static_cast<int>(info.label_type.value_or(element_type::u8)),
                         "is_row", shape.is_row ? 1 : 0);
}

/// Returns the name of that number; null if there is no name.
std::string const* name_of(PyObject* wanted, std::vector<std::string> const& names, std::size_t count, char const* what) {
    auto const at = PyLong_AsUnsignedLongLong(wanted);
    if (PyErr_Occurred() != nullptr) throw python_error();
    if (at >= count)
        throw error(errc::usage, std::string(what) + " " + std::to_string(at) + " of " + std::to_string(count) + "; give less");
    return names.empty() ? nullptr : &names[at];
}

PyObject* class_name(dataset& data, PyObject* wanted) {
    static std::string const unnamed;
    auto const* name = name_of(wanted, data.info().class_names, data.classes(), "class");
    return text_or_none(name == nullptr ? &unnamed : name);
}

PyObject* column_name(dataset& data, PyObject* wanted) {
    return text_or_none(name_of(wanted, data.info().columns, data.shape().elements(), "element"));
}

std::span<std::uint8_t> bytes_of_array(PyObject* array) {
    return {reinterpret_cast<std::uint8_t*>(PyByteArray_AsString(array)), static_cast<std::size_t>(PyByteArray_Size(array))};
}

PyObject* read(dataset& data, PyObject* given) {
    number first = 0, count = 0;
    PyObject *samples = nullptr, *labels = nullptr;
    parse(given, "KKYY", &first, &count, &samples, &labels);
    auto const images = bytes_of_array(samples), classes = bytes_of_array(labels);
    if (count > data.size())
        throw error(errc::usage, std::to_string(count) + " samples to read of " + std::to_string(data.size()) + "; give fewer");
    if ((!images.empty() && images.size() != count * data.image_bytes()) ||
        (!classes.empty() && classes.size() != count * data.label_bytes()))
        return PyErr_Format(PyExc_ValueError, "read(): %zu bytes for %llu samples and %zu for their labels", images.size(), count,
                            classes.size());
    return done([&] { data.read(first, count, images, classes); });
}

PyObject* verify(dataset& data, PyObject*) {
    return done([&] { data.verify(); });
}

PyObject* window(dataset& data, PyObject*) {
    auto const found = window_for(data.size(), data.image_bytes(), data.info().chunk_samples);
    return Py_BuildValue("KK", number(found.chunk_samples), number(found.chunks));
}

PyObject* close_data(PyObject* self, PyObject*) {
    release<dataset>(self);
    Py_RETURN_NONE;
}

// ------------------------------------------------------------------------------------------------ samplers

/// Reads a sequence of numbers.
template <typename Number>
std::vector<Number> read_numbers(PyObject* given) {
    Py_ssize_t const count = PySequence_Size(given);
    if (count < 0) throw python_error();
    std::vector<Number> numbers;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* const each = PySequence_GetItem(given, i);
        numbers.push_back(static_cast<Number>(each == nullptr ? -1 : PyFloat_AsDouble(each)));
        Py_XDECREF(each);
        if (PyErr_Occurred() != nullptr) throw python_error();
    }
    return numbers;
}

void require_one_each(std::size_t given, number wanted, char const* what, char const* of) {
    if (given == wanted) return;
    PyErr_Format(PyExc_ValueError, "%zu %s for %llu %s; give one for each", given, what, wanted, of);
    throw python_error();
}

template <typename Enum>
Enum one_of(int given, Enum last, char const* what) {
    if (given < 0 || given > static_cast<int>(last))
        throw error(errc::usage,
                    std::string(what) + " is " + std::to_string(given) + "; give 0 to " + std::to_string(static_cast<int>(last)));
    return static_cast<Enum>(given);
}

/// Returns the words as PyArg_ParseTupleAndKeywords takes them, which does not write to them.
template <std::size_t N>
char** names(char const* (&words)[N]) {
    return const_cast<char**>(words);
}

PyObject* make_sampler(PyObject*, PyObject* given, PyObject* named) {
    return guarded([&] {
        char const* words[]{"samples", "seed", "sequential", "tail", "spread", "window", "weights", "draws", "once", nullptr};
        number samples = 0, seed = 0, chunk_samples = 0, chunks = 0, draws = 0;
        int sequential = 0, tail = 0, spread = 0, once = 0;
        PyObject* weights = Py_None;
        if (!PyArg_ParseTupleAndKeywords(given, named, "K|$Kpii(KK)OKp", names(words), &samples, &seed, &sequential, &tail,
                                         &spread, &chunk_samples, &chunks, &weights, &draws, &once))
            throw python_error();
        sampler_options const how{.seed = seed,
                                  .shuffle = sequential == 0,
                                  .tail = one_of(tail, tail_rule::drop, "tail"),
                                  .spread = one_of(spread, spread_rule::by_node, "spread"),
                                  .window = {chunk_samples, chunks}};
        if (weights == Py_None) return own_made([&] { return std::make_unique<sampler>(samples, how); });
        auto numbers = read_numbers<double>(weights);
        require_one_each(numbers.size(), samples, "weights", "samples");
        return own_made([&] {
            return std::make_unique<sampler>(std::move(numbers), weighted_options{.draws = draws, .replacement = once == 0}, how);
        });
    });
}

/// Reads the tuple (epoch, rank, world, start, node_first, node_ranks).
epoch_part read_part(PyObject* given) {
    number epoch = 0, start = 0;
    epoch_part part;
    parse(given, "KiiKii", &epoch, &part.rank, &part.world, &start, &part.node.first, &part.node.count);
    part.epoch = epoch;
    part.start = start;
    return part;
}

PyObject* count(sampler& order, PyObject* given) {
    return PyLong_FromUnsignedLongLong(order.count(read_part(given)));
}

PyObject* fill(sampler& order, PyObject* given) {
    PyObject* tuple = nullptr;
    number first = 0, wanted = 0;
    parse(given, "OKK", &tuple, &first, &wanted);
    auto const part = read_part(tuple);
    auto const mine = order.count(part);
    if (first > mine || wanted > mine - first)
        throw error(errc::usage, "samples " + std::to_string(first) + " to " + std::to_string(first + wanted) + " of a part of " +
                                     std::to_string(mine) + "; give fewer");
    PyObject* const filled = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(wanted * sizeof(std::uint64_t)));
    if (filled == nullptr) return nullptr;
    try {
        without_gil([&] { order.fill(part, first, {reinterpret_cast<std::uint64_t*>(PyBytes_AsString(filled)), wanted}); });
    } catch (std::exception const&) {  // no guard: it would run without the GIL where Python ends this thread
        Py_DECREF(filled);
        throw;
    }
    return filled;
}

// ------------------------------------------------------------------------------------------------ loaders

/// Reads one number a channel; no number from None.
std::vector<float> read_channels(PyObject* given, number channels) {
    if (given == Py_None) return {};
    auto numbers = read_numbers<float>(given);
    require_one_each(numbers.size(), channels, "numbers", "channels");
    return numbers;
}

/// Reads the tuple (channels, crop_height, crop_width, pad, random, flip, mean, deviation).
transform_options read_transform(PyObject* given) {
    number channels = 0, height = 0, width = 0, pad = 0;
    int random = 0, flip = 0;
    PyObject *mean = nullptr, *deviation = nullptr;
    parse(given, "KKKKppOO", &channels, &height, &width, &pad, &random, &flip, &mean, &deviation);
    return {.mean = read_channels(mean, channels),
            .deviation = read_channels(deviation, channels),
            .crop_height = height,
            .crop_width = width,
            .pad = pad,
            .random = random != 0,
            .flip = flip != 0};
}

/// Returns a number of threads; 0 is `otherwise`.
std::size_t threads_of(int given, std::size_t otherwise, char const* what) {
    if (given < 0) throw error(errc::usage, std::string(what) + " is " + std::to_string(given) + "; give 0 or more");
    return given == 0 ? otherwise : static_cast<std::size_t>(given);
}

PyObject* make_loader(PyObject*, PyObject* given, PyObject* named) {
    return guarded([&] {
        char const* words[]{"data",    "sampler", "shared",      "batch",  "place",     "memory", "prefetch",
                            "workers", "readers", "large_pages", "pinned", "transform", nullptr};
        PyObject *data = nullptr, *order = nullptr, *changes = Py_None;
        number batch_samples = 64;
        int shared = 0, memory = 0, prefetch = 0, workers = 0, readers = 0, large_pages = 0, pinned = 0;
        loader_options how{.world = 0, .local_size = 0};
        if (!PyArg_ParseTupleAndKeywords(given, named, "O!O!|$pK(iiii)iiiipiO", names(words), owner<dataset>::type, &data,
                                         owner<sampler>::type, &order, &shared, &batch_samples, &how.rank, &how.world,
                                         &how.local_rank, &how.local_size, &memory, &prefetch, &workers, &readers, &large_pages,
                                         &pinned, &changes))
            throw python_error();
        how.batch = batch_samples == 0 ? 64 : batch_samples;
        if (how.world == 0) how.world = 1;
        if (how.local_size == 0) how.local_size = 1;
        how.memory = one_of(memory, memory_mode::windowed, "memory");
        if (prefetch != 0) how.prefetch = prefetch < 0 ? 0 : static_cast<std::size_t>(prefetch);
        how.workers = threads_of(workers, 1, "workers");
        how.readers = threads_of(readers, 4, "readers");
        how.large_pages = large_pages != 0;
        if (pinned != 0) how.pinned = pinned > 0;
        if (changes != Py_None) how.transform = read_transform(changes);
        auto const& from = made_of<dataset>(data);
        auto const& samples = made_of<sampler>(order);
        auto const variables = environment::capture();
        how.wait_page = variables.get_or(wait_page_variable, "");
        return own_made([&] {
            if (shared == 0) return std::make_unique<feed>(loader(from, samples, how));
            communicator ranks = communicator::create(identify(variables));
            return std::make_unique<feed>(loader(from, samples, ranks, how));
        });
    });
}

PyObject* epoch(feed& of, PyObject* given) {
    number wanted = 0, begin = 0;
    parse(given, "KK", &wanted, &begin);
    return done([&] {
        of.at.reset();
        of.epoch.reset();
        of.epoch = of.from.epoch(wanted, begin);
    });
}

/// Returns the batch that comes next; null at the end of the epoch.
batch const* advance(feed& of) {
    if (!of.epoch) throw error(errc::usage, "no epoch has begun, or it has failed; call epoch()");
    try {
        if (!of.at)
            of.at = of.epoch->begin();
        else if (*of.at != std::default_sentinel)
            ++*of.at;
    } catch (...) {
        of.at.reset();
        of.epoch.reset();
        throw;
    }
    return *of.at == std::default_sentinel ? nullptr : &**of.at;
}

PyObject* next(feed& of, PyObject*) {
    batch const* now = nullptr;
    without_gil([&] { now = advance(of); });
    if (now == nullptr) Py_RETURN_NONE;
    auto const address = [](void const* of_samples) { return number(reinterpret_cast<std::uintptr_t>(of_samples)); };
    return Py_BuildValue("KKy#KKK", now->values.data() != nullptr ? address(now->values.data()) : address(now->images.data()),
                         address(now->labels.data()), now->count == 0 ? "" : reinterpret_cast<char const*>(now->samples.data()),
                         static_cast<Py_ssize_t>(sizeof(std::uint64_t) * now->count), number(now->count),
                         number(now->global_count), number(now->resume_at));
}

PyObject* report(feed& of, PyObject*) {
    auto const spent = of.from.report();
    return Py_BuildValue("KKKdd", number(spent.steps), number(spent.samples), number(spent.bytes), spent.waited_s, spent.total_s);
}

PyObject* why(feed& of, PyObject*) {
    return text_or_none(&of.from.why());
}

// ------------------------------------------------------------------------------------------------ the module

PyMethodDef data_methods[]{
    {"describe", method<dataset, describe>, METH_NOARGS,
     "describe() -> what is known of samples and labels, by name; shape is (channels, height, width)"},
    {"column_name", method<dataset, column_name>, METH_O, "column_name(number) -> the name of an element of a row, or None"},
    {"class_name", method<dataset, class_name>, METH_O, "class_name(number) -> the name of a class"},
    {"read", method<dataset, read>, METH_VARARGS,
     "read(first, count, samples, labels): into bytearrays; an empty one leaves that part out"},
    {"verify", method<dataset, verify>, METH_NOARGS, "verify(): compares everything with the checksums"},
    {"window", method<dataset, window>, METH_NOARGS,
     "window() -> (samples of a chunk, chunks) of a shuffle that suits the file; zeros up to 4 GiB"},
    {"close", close_data, METH_NOARGS, "close(): loaders made from it go on"},
    {nullptr, nullptr, 0, nullptr}};
PyMethodDef sampler_methods[]{
    {"count", method<sampler, count>, METH_O, "count(part) -> samples of (epoch, rank, world, start, node_first, node_ranks)"},
    {"fill", method<sampler, fill>, METH_VARARGS,
     "fill(part, first, count) -> bytes of uint64: the samples number first and on of that part"},
    {nullptr, nullptr, 0, nullptr}};
PyMethodDef loader_methods[]{
    {"epoch", method<feed, epoch>, METH_VARARGS, "epoch(epoch, start): begins an epoch, and ends the one before"},
    {"next", method<feed, next>, METH_NOARGS,
     "next() -> (samples' address, labels' or 0, their numbers as bytes, count, global_count, resume_at), valid until the next "
     "call; None: over"},
    {"report", method<feed, report>, METH_NOARGS, "report() -> (steps, samples, bytes, waited_s, total_s) of the epoch"},
    {"why", method<feed, why>, METH_NOARGS, "why() -> the memory mode, in words"},
    {nullptr, nullptr, 0, nullptr}};

PyCFunction with_names(PyCFunctionWithKeywords function) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef functions[]{{"open", open_data, METH_VARARGS, "open(path, split) -> Data"},
                        {"sampler", with_names(make_sampler), METH_VARARGS | METH_KEYWORDS,
                         "sampler(samples, seed=0, …) -> Sampler; as sampler_options"},
                        {"loader", with_names(make_loader), METH_VARARGS | METH_KEYWORDS,
                         "loader(data, sampler, batch=64, …) -> Loader; as loader_options"},
                        {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition{
    PyModuleDef_HEAD_INIT, "_muster_data", "Datasets of muster.", -1, functions, nullptr, nullptr, nullptr, nullptr};

template <typename T>
bool make_type(PyObject* module, char const* name, PyMethodDef* methods) {
    static PyMemberDef members[]{{"__weaklistoffset__", T_PYSSIZET, offsetof(owner<T>, weak_references), READONLY, nullptr},
                                 {nullptr, 0, 0, 0, nullptr}};
    PyType_Slot slots[]{
        {Py_tp_dealloc, reinterpret_cast<void*>(drop<T>)}, {Py_tp_methods, methods}, {Py_tp_members, members}, {0, nullptr}};
    PyType_Spec spec{name, sizeof(owner<T>), 0, Py_TPFLAGS_DEFAULT, slots};
    PyObject* const type = PyType_FromSpec(&spec);
    if (type == nullptr) return false;
    Py_INCREF(type);
    owner<T>::type = reinterpret_cast<PyTypeObject*>(type);
    return PyModule_AddObject(module, std::strrchr(name, '.') + 1, type) == 0;
}

}  // namespace

PyMODINIT_FUNC PyInit__muster_data(void) {
    PyObject* const module = PyModule_Create(&definition);
    error_classes = PyDict_New();
    if (module == nullptr || error_classes == nullptr || !make_type<dataset>(module, "_muster_data.Data", data_methods) ||
        !make_type<sampler>(module, "_muster_data.Sampler", sampler_methods) ||
        !make_type<feed>(module, "_muster_data.Loader", loader_methods))
        return nullptr;
    Py_INCREF(error_classes);
    if (PyModule_AddObject(module, "error_classes", error_classes) != 0) return nullptr;
    pthread_atfork(nullptr, nullptr, [] { ++forks; });
    return module;
}
