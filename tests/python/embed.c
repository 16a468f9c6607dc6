/* SPDX-License-Identifier: MIT */
/*
 * A host that starts and ends Python more than once, with threads of its own
 * and a second interpreter in each; the module is imported anew every time. It
 * does other things between two scripts.
 *
 *     embed ROUNDS
 *
 * Prints TAP.
 */
#include <Python.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char work[] = "import json\n"
                           "for _ in range(300):\n"
                           "    json.dumps([list(range(50))] * 3)\n";

static const char profile[] = "import cpprof, json\n"
                              "try:\n"
                              "    cpprof.start(hz=1000, out='embed.pb.gz')\n"
                              "except RuntimeError:\n"
                              "    pass\n" /* CPPROF has started one */
                              "for _ in range(3000):\n"
                              "    json.dumps([list(range(50))] * 3)\n";

static const char begin_other[] =
    "import cpprof, gzip, time\n"
    "try:\n"
    "    cpprof.start(hz=1000, out='other.pb.gz')\n"
    "except RuntimeError:\n"
    "    cpprof = None\n" /* CPPROF has started one */
    "def comes_later():\n"
    "    end = time.thread_time() + 0.3\n"
    "    while time.thread_time() < end:\n"
    "        pass\n";

static const char end_other[] =
    "comes_later()\n"
    "if cpprof:\n"
    "    cpprof.stop()\n"
    "    assert b'comes_later' in gzip.open('other.pb.gz').read()\n";

static void
run(const char *text)
{
    if (PyRun_SimpleString(text))
        exit(1);
}

static void *
thread(void *unused)
{
    int i;

    for (i = 0; i < 20; i++) {
        PyGILState_STATE gil = PyGILState_Ensure();

        run(work);
        PyGILState_Release(gil);
    }
    return NULL;
}

static void
run_threads(void)
{
    PyThreadState *state = PyEval_SaveThread();
    pthread_t threads[3];
    int i;

    for (i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, thread, NULL);
    for (i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    PyEval_RestoreThread(state);
}

static void
run_second_interpreter(void)
{
    PyThreadState *state = PyThreadState_Get();
    PyThreadState *second = Py_NewInterpreter();

    run(work);
    Py_EndInterpreter(second);
    PyThreadState_Swap(state);
}

/* No thread has a frame meanwhile, and ticks come. */
static void
run_other_things(void)
{
    PyThreadState *state;

    run(begin_other);
    state = PyEval_SaveThread();
    usleep(100000);
    PyEval_RestoreThread(state);
    run(end_other);
}

int
main(int argc, char **argv)
{
    int i, n = argc > 1 ? atoi(argv[1]) : 3;

    /* New threads have the addresses and numbers of those before. */
    for (i = 0; i < 10 * n; i++) {
        Py_Initialize();
        run("import cpprof\n"
            "try:\n"
            "    cpprof.start(hz=1000, out='/dev/null')\n"
            "except RuntimeError:\n"
            "    pass\n");
        if (Py_FinalizeEx())
            return 2;
    }
    for (i = 0; i < n; i++) {
        Py_Initialize();
        run_other_things();
        if (Py_FinalizeEx())
            return 2;
    }
    for (i = 0; i < n; i++) {
        Py_Initialize();
        run(profile);
        run_threads();
        run_second_interpreter();
        if (Py_FinalizeEx())
            return 2;
    }
    puts("ok 1 - Python starts and ends again, with the module\n1..1");
    return 0;
}
