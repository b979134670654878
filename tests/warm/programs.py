"""Programs whose results must not depend on how their interpreter was started: a name, the
code, and fields of the request if they matter. Where a name is in KNOWN the results do
differ, for the reason that stands there.
"""
PROGRAMS = {
    "hello": (r"""print('hello')""", {}),
    "empty": ('', {}),
    "main": (r"""print({k:(v if k!='__builtins__' else type(v)) for k,v in list(globals().items())})
print(list(globals()))""", {}),
    "sysargs": (r"""import sys
print(sys.argv,sys.orig_argv,sys.path,sys.flags,sys.executable,sys.prefix,sys.base_prefix,sys.platlibdir,sys.byteorder)
print(sys.stdin,sys.stdout,sys.stderr,sys.stdout.line_buffering,sys.stdout.write_through,sys.stdin.buffer,sys.stdout.buffer)
print(sys.getrecursionlimit(),sys.getswitchinterval(),sys.warnoptions,sys._xoptions,sys.dont_write_bytecode,sys.pycache_prefix)
print(sys.meta_path,len(sys.path_hooks))""", {}),
    "env": (r"""import os
print(dict(os.environ),os.getcwd(),os.getpid(),os.getppid(),os.getuid(),os.geteuid(),os.getgid(),os.getgroups(),os.getsid(0),os.getpgrp(),os.umask(0))""", {}),
    "tb": (r"""def f(n):
  if n==0: 1/0
  f(n-1)
f(3)""", {}),
    "syntax": (r"""x = (1,
print(""", {}),
    "syntax2": (r"""def f(:
  pass""", {}),
    "indent": (r"""if 1:
pass""", {}),
    "tabs": (r"""if 1:
	x=1
        y=2""", {}),
    "odd_keys": (r"""import sys
class D:
    def __del__(self): print('gone')
d = D()
sys.modules[b'abc'] = sys
sys.__dict__[1 << 200] = d
sys.__dict__[None] = 1
print('end')""", {}),
    "odd_hash": (r"""import sys
class D:
    def __del__(self): print('gone')
d = D()
n = 0
class K:
    def __hash__(self):
        global n
        n += 1
        return n
    def __eq__(self, other): return self is other
sys.modules[K()] = sys
sys.__dict__[K()] = d
print('end')""", {}),
    "nul": ('x=1\x00\nprint(2)', {}),
    "bom": ("\ufeffprint('bom')", {}),
    "crlf": ("print('a')\r\nif 1:\r\n  print('''x\r\ny''')\r\n1/0\r\n", {}),
    "cr": ("print('a')\rprint('b')\r", {}),
    "enc_latin": ("# -*- coding: latin-1 -*-\nprint(ascii('\xe9'))\n1/0", {}),
    "enc_bad": (r"""# -*- coding: nosuch -*-
print(1)""", {}),
    "enc_bom_bad": ('\ufeff# -*- coding: latin-1 -*-\nprint(1)', {}),
    "nonl": ("print('x')\nraise ValueError('\xe9\u2603')", {}),
    "longline": ("x = '" + "a" * 70000 + "'\nprint(len(x))\n1/0", {}),
    "exit0": ('import sys; sys.exit()', {}),
    "exit3": ('import sys; sys.exit(3)', {}),
    "exitstr": (r"""import sys; sys.exit('bye')""", {}),
    "exittuple": ('raise SystemExit((1,2))', {}),
    "exitbig": ('raise SystemExit(2**70)', {}),
    "exitneg": ('raise SystemExit(-1)', {}),
    "exit256": ('raise SystemExit(256)', {}),
    "exitTrue": ('raise SystemExit(True)', {}),
    "exitcls": ('raise SystemExit', {}),
    "exitsub": (r"""class E(SystemExit):
  code=property(lambda s: 1/0)
raise E(4)""", {}),
    "exitstderrnone": (r"""import sys; sys.stderr=None; sys.exit('bye')""", {}),
    "quit": ('quit()', {}),
    "quit5": ('exit(5)', {}),
    "osexit": (r"""import os; print('a',end=''); os._exit(7)""", {}),
    "kbd": ('raise KeyboardInterrupt', {}),
    "kbd2": ('import os,signal; os.kill(os.getpid(),signal.SIGINT); import time; time.sleep(1)', {}),
    "abort": ('import os; os.abort()', {}),
    "segv": ('import ctypes; ctypes.string_at(0)', {}),
    "sigterm": ('import os,signal; os.kill(os.getpid(),signal.SIGTERM)', {}),
    "hook": (r"""import sys
def h(*a): print('hook',a)
sys.excepthook=h
1/0""", {}),
    "hookraise": (r"""import sys
def h(*a): raise TypeError('in hook')
sys.excepthook=h
1/0""", {}),
    "hookexit": (r"""import sys
def h(*a): sys.exit(9)
sys.excepthook=h
1/0""", {}),
    "hooknone": (r"""import sys
del sys.excepthook
1/0""", {}),
    "atexit": (r"""import atexit
atexit.register(print,'one')
atexit.register(print,'two')
@atexit.register
def f(): 1/0
print('end')""", {}),
    "atexit_exit": (r"""import atexit,sys
atexit.register(lambda: sys.exit(4))
print('x')""", {}),
    "del_global": (r"""class A:
  def __del__(self): print('del',__name__)
a=A()
print('end')""", {}),
    "del_cycle": (r"""class A:
  def __del__(self): print('del',self.n)
x=A(); x.n='x'; x.me=x
y=A(); y.n='y'; y.me=y
def f(): pass
print('end')""", {}),
    "del_exit": (r"""import sys
class A:
  def __init__(s,n): s.n=n
  def __del__(self): print('del',self.n)
b=A('b'); a=A('a'); _p=A('_p')
def f(): pass
sys.exit(2)""", {}),
    "del_exc": (r"""class A:
  def __init__(s,n): s.n=n
  def __del__(self): print('del',self.n)
b=A('b'); a=A('a'); _p=A('_p')
def f():
  z=A('local')
  1/0
f()""", {}),
    "del_import": (r"""class A:
  def __del__(self):
    import os; print(os.getcwd())
a=A()""", {}),
    "del_import2": (r"""class A:
  def __del__(self):
    import time; print(time)
a=A()""", {}),
    "del_import3": (r"""class A:
  def __del__(self):
    import colorsys; print(colorsys)
a=A()""", {}),
    "del_import4": (r"""class A:
  def __del__(self):
    import colorsys; print(colorsys)
a=A()
a.x=a""", {}),
    "del_import5": (r"""class A:
  def __del__(self):
    import os; print(os)
a=A()
a.x=a""", {}),
    "del_sys": (r"""import sys
class A:
  def __del__(self): print('del',sys, sys and sys.modules)
sys.foo=A()""", {}),
    "del_builtins": (r"""import builtins
class A:
  def __del__(self): print('del b')
builtins.foo=A()
builtins.len=A()""", {}),
    "del_isfinal": (r"""import sys
class A:
  def __del__(self,sys=sys): print(sys.is_finalizing(), sys.path, sys.meta_path, sys.argv, 'json' in sys.modules)
a=A()""", {}),
    "filedel": (r"""f=open('x.txt','w'); f.write('data')
import os
r=os.fork()
if r: os.waitpid(r,0); print(open('x.txt').read())""", {}),
    "unflushed": (r"""import sys,os
r,w=os.pipe()
p=os.fork()
if p==0:
  f=os.fdopen(w,'w'); f.write('hello'); sys.exit(0)
os.close(w); os.waitpid(p,0); print(os.read(r,100))""", {}),
    "stdoutclosed": ('import sys; sys.stdout.close()', {}),
    "stdoutclosed2": (r"""import os; os.close(1); print('x')""", {}),
    "stderrclosed": ('import os; os.close(2); 1/0', {}),
    "devfull": (r"""import sys,os
fd=os.open('/dev/full',os.O_WRONLY); os.dup2(fd,1); print('x')""", {}),
    "stdoutrepl": (r"""import sys,io
class S(io.StringIO):
  def flush(s): 1/0
sys.stdout=S(); print('x')""", {}),
    "stack": (r"""import inspect,traceback,sys
print(inspect.stack())
traceback.print_stack()
print(sys._getframe().f_back, sys._current_frames())""", {}),
    "recur": (r"""d=0
def f():
  global d; d+=1; f()
try: f()
except RecursionError as e: print(d,e)""", {}),
    "recur2": (r"""def f(): f()
f()""", {}),
    "recur3": (r"""import sys
sys.setrecursionlimit(50)
d=0
def f():
  global d; d+=1; f()
try: f()
except RecursionError as e: print(d,e)""", {}),
    "warn": (r"""import warnings
warnings.warn('x')
warnings.warn('y',DeprecationWarning,stacklevel=1)
warnings.warn('z',stacklevel=5)
print(warnings.filters)
print(__warningregistry__)""", {}),
    "warnsyntax": (r"""x = 1 is 1
print('\d')""", {}),
    "thread": (r"""import threading,time
def f(): time.sleep(.1); print('t',threading.current_thread())
t=threading.Thread(target=f); t.start(); print('main end',threading.current_thread(),threading.main_thread().native_id)""", {}),
    "threadexc": (r"""import threading
def f(): 1/0
t=threading.Thread(target=f); t.start(); t.join()""", {}),
    "daemon": (r"""import threading,time
def f():
  while 1: time.sleep(.01)
t=threading.Thread(target=f,daemon=True); t.start(); print(threading.enumerate())""", {}),
    "pool": (r"""import concurrent.futures as c
with c.ThreadPoolExecutor(3) as e: print(list(e.map(abs,[-1,-2])))
e=c.ThreadPoolExecutor(2); print(e.submit(pow,2,3).result())""", {}),
    "mp": (r"""import multiprocessing as m
def f(x): return x*x
if __name__=='__main__':
  with m.Pool(2) as p: print(p.map(f,[1,2,3]))""", {}),
    "mpspawn": (r"""import multiprocessing as m
def f(q): q.put(__name__)
if __name__=='__main__':
  c=m.get_context('spawn'); q=c.Queue(); p=c.Process(target=f,args=(q,)); p.start(); print(q.get()); p.join(); print(p.exitcode)""", {'timeout_seconds': 20, 'cpu_limit': 1}),
    "mpfs": (r"""import multiprocessing as m
def f(q): q.put(__name__)
if __name__=='__main__':
  c=m.get_context('forkserver'); q=c.Queue(); p=c.Process(target=f,args=(q,)); p.start(); print(q.get()); p.join(); print(p.exitcode)""", {'timeout_seconds': 20, 'cpu_limit': 1}),
    "pickle": (r"""import pickle
class A: pass
print(pickle.dumps(A()), pickle.loads(pickle.dumps(A())).__class__)""", {}),
    "dataclass": (r"""from dataclasses import dataclass
@dataclass
class A:
  x:int=1
print(A(),A.__module__)""", {}),
    "getsource": (r"""import inspect
def f():
  return 1
print(inspect.getsource(f), inspect.getfile(f))
import __main__; print(inspect.getsource(__main__)[:20], __main__)""", {}),
    "annot": (r"""x:int=1
print(__annotations__)""", {}),
    "settrace": (r"""import sys
def t(f,e,a): print(e,f.f_lineno); return t
sys.settrace(t)
def g():
  return 1
g()
sys.settrace(None)""", {}),
    "faulthandler": (r"""import faulthandler
faulthandler.dump_traceback()
faulthandler.enable()
import ctypes
ctypes.string_at(0)""", {}),
    "signals": (r"""import signal
print({s:signal.getsignal(s) for s in signal.valid_signals()})
print(signal.pthread_sigmask(signal.SIG_BLOCK,[]), signal.getitimer(0))""", {}),
    "procstatus": (r"""import re
for line in open('/proc/self/status'):
    if not re.match('Vm|Rss|Hugetlb|FDSize|.*ctxt', line): print(line, end='')""", {}),
    "proc_misc": (r"""for n in 'cmdline environ comm limits oom_score_adj timerslack_ns personality coredump_filter'.split():
  try: print(n,open('/proc/self/'+n,'rb').read())
  except OSError as e: print(n,e)""", {}),
    "fds": (r"""import os
print({f:os.readlink('/proc/self/fd/'+f).split(':')[0] for f in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/'+f)})""", {}),
    "ns": (r"""import os
print(os.readlink('/proc/self/exe'),os.readlink('/proc/self/cwd'),os.readlink('/proc/self/root'))""", {}),
    "rlimits": (r"""import resource
print({n:resource.getrlimit(getattr(resource,n)) for n in dir(resource) if n.startswith('RLIMIT')})""", {}),
    "sub": (r"""import subprocess,sys
print(subprocess.run([sys.executable,'-c','import sys;print(sys.argv,sys.path)'],capture_output=True,text=True))""", {}),
    "stdin": (r"""import sys
print(repr(sys.stdin.read()), sys.stdin.isatty())""", {}),
    "input": (r"""input('? ')""", {}),
    "interp": (r"""import sys
print(sys.implementation, sys.version, sys.hexversion, sys.api_version, sys.float_info, sys.int_info, sys.hash_info, sys.thread_info,sys.getfilesystemencoding(),sys.getdefaultencoding())""", {}),
    "locale": (r"""import locale,time,os
print(locale.getlocale(),locale.setlocale(locale.LC_ALL),time.tzname,time.timezone,os.environ.get('TZ'))""", {}),
    "site": (r"""import site,sys
print(site.ENABLE_USER_SITE,site.USER_SITE,site.USER_BASE,site.PREFIXES)
print(exit,quit,copyright,license,help)
print(hasattr(sys,'__interactivehook__'),hasattr(sys,'ps1'),hasattr(sys,'last_type'))""", {}),
    "builtins": ('import builtins; print(dir(builtins)); print(dir(__builtins__)==dir(builtins)); import sys; print(sorted(set(dir(sys))))', {}),
    "gc": (r"""import gc
print(gc.isenabled(),gc.get_threshold(),gc.get_debug(),gc.garbage,gc.callbacks)""", {}),
    "context": (r"""import contextvars
print(list(contextvars.copy_context().items()))
import decimal; print(decimal.getcontext())""", {}),
    "async": (r"""import asyncio
async def f():
  await asyncio.sleep(.01); print(asyncio.current_task().get_name()); return 3
print(asyncio.run(f()))""", {}),
    "logging": (r"""import logging
logging.basicConfig(level=10)
logging.info('x')
logging.getLogger('a.b').warning('y')
print(logging.root.handlers, logging.root.manager.loggerDict.keys())""", {}),
    "logexit": (r"""import logging
logging.basicConfig(filename='l.txt')
logging.error('z')
import atexit; atexit.register(lambda: print(open('l.txt').read()))""", {}),
    "importmod": (r"""open('helper.py','w').write('x=5\nprint(__name__,__file__,__spec__)\nclass A:\n  def __del__(s): print("hdel")\na=A()')
import helper
print(helper, helper.x)""", {}),
    "importmod2": (r"""open('helper.py','w').write('1/0')
import helper""", {}),
    "json_shadow": (r"""open('json.py','w').write('x=5')
import json; print(json.__file__)""", {}),
    "counts": (r"""import itertools,threading,uuid,tempfile,random
t=threading.Thread(); print(t.name, threading._counter if hasattr(threading,'_counter') else '')
print(tempfile._name_sequence, uuid._node, random._inst.gauss_next)
import asyncio.tasks as a; print(a._task_name_counter)
import concurrent.futures.thread as c; print(c.ThreadPoolExecutor._counter)""", {}),
    "reduce": (r"""import sys
print(sys.getrefcount.__name__, sys.intern('abc'), sys.getallocatedblocks()>0)""", {}),
    "tracemalloc": ('import tracemalloc; tracemalloc.start(); x=[1]*100; print(tracemalloc.get_traced_memory()[0]>0)', {}),
    "cprint": (r"""import ctypes
ctypes.CDLL(None).puts(b'hi from c')
print('py')""", {}),
    "fork": (r"""import os,sys
r=os.fork()
if r==0:
  print('child'); sys.exit(3)
print(os.waitpid(r,0)[1]); print('parent')""", {}),
    "forkatexit": (r"""import os,atexit
atexit.register(lambda: print('ae',os.getpid()))
if os.fork()==0: pass
else: os.wait()""", {}),
    "exec": (r"""import os,sys
os.execv(sys.executable,[sys.executable,'-c','print(5)'])""", {}),
    "code_in_main": (r"""import sys
sys.modules['__main__'].y=3
print(y)
del sys.modules['__main__']
print(1)""", {}),
    "delmodules": (r"""import sys
sys.modules.clear()
print(1)""", {}),
    "modnone": (r"""import sys
sys.modules=None
print(1)""", {}),
    "badbuiltins": (r"""import builtins
for n in dir(builtins):
  if n[0]!='_' and n!='print': setattr(builtins,n,None)
print(1)""", {}),
    "brokenimport": (r"""import builtins
builtins.__import__=None
print(1)""", {}),
    "threadshut": (r"""import threading
threading._shutdown=lambda: 1/0
print(1)""", {}),
    "weakfin": (r"""import weakref
class A: pass
a=A()
weakref.finalize(a,print,'fin')
print('e')""", {}),
    "tempdir": (r"""import tempfile,os
d=tempfile.TemporaryDirectory(); n=tempfile.NamedTemporaryFile(); print(os.path.exists(d.name))""", {}),
    "gen": (r"""def g():
  try: yield 1
  finally: print('gen closed')
x=g(); next(x)""", {}),
    "coro": (r"""async def f(): pass
f()""", {}),
    "asyncgen": (r"""import asyncio
async def g():
  try:
    yield 1
  finally: print('agclosed')
async def m():
  async for x in g(): break
asyncio.run(m())""", {}),
    "unraisable": (r"""import sys
sys.unraisablehook=lambda a: print('unr',a.exc_type)
class A:
  def __del__(s): 1/0
A()
a=A()""", {}),
    "resw": (r"""import warnings
warnings.simplefilter('always')
open('f','w')
f=open('g','w')""", {}),
    "linecache": (r"""import linecache
print(linecache.cache.keys() if hasattr(linecache,'cache') else 0)""", {}),
    "rusage": (r"""import resource,time
print(time.process_time()<1)""", {}),
    "exeopen": (r"""print(open('/proc/self/exe','rb').read(4))""", {}),
    "maps": (r"""import re
print(sorted({l.split()[5] for l in open('/proc/self/maps') if len(l.split())>5 and 'run' in l.split()[5]}))""", {}),
    "sqlite": (r"""import sqlite3
c=sqlite3.connect(':memory:'); print(c.execute('select 1+1').fetchall())""", {}),
    "ssl": (r"""import ssl,hashlib; print(ssl.OPENSSL_VERSION, hashlib.sha256(b'x').hexdigest()[:8])""", {}),
    "unittest": (r"""import unittest
class T(unittest.TestCase):
  def test_a(self): self.assertEqual(1,2)
unittest.main()""", {}),
    "doctest": (r"""def f():
  '''
  >>> f()
  2
  '''
  return 1
import doctest; print(doctest.testmod())""", {}),
    "runpy": (r"""import runpy
open('m.py','w').write('print(__name__,__file__)')
runpy.run_path('m.py',run_name='__main__')""", {}),
    "code": (r"""import code
code.interact()""", {}),
    "pdb": (r"""breakpoint()
print(1)""", {}),
    "memoryerr": ('x=[0]*(10**10)', {}),
    "bigerr": (r"""raise Exception('a'*100000)""", {}),
    "nested": (r"""try:
  1/0
except Exception as e:
  raise ValueError('x') from e""", {}),
    "group": (r"""raise ExceptionGroup('g',[ValueError(1),TypeError(2)])""", {}),
    "notes": (r"""e=ValueError(1); e.add_note('n'); raise e""", {}),
    "attrsugg": (r"""import sys
sys.exitt""", {}),
    "namesugg": ('prnt(1)', {}),
    "globrepr": (r"""def f(): pass
print(f.__module__, f.__globals__ is globals(), f.__code__.co_filename)""", {}),
    "typing": (r"""import typing
class A:
  x: 'B'
class B: pass
print(typing.get_type_hints(A))""", {}),
    "enum_pickle": (r"""import enum,pickle
class C(enum.Enum):
  A=1
print(pickle.loads(pickle.dumps(C.A)))""", {}),
    "relative": (r"""import logging,io
r=logging.makeLogRecord({})
r=logging.LogRecord('a',20,'f',1,'m',(),None)
print(0 <= r.relativeCreated < 1000)""", {}),
    "ncallbacks": (r"""import atexit
print(atexit._ncallbacks())
import logging
logging.shutdown()""", {}),
    "gccycle": (r"""class A:
  def __del__(s): print('d')
for i in range(3):
  a=A(); a.me=a
  del a
print('end')""", {}),
    "gcoff": (r"""import gc
gc.disable()
class A:
  def __del__(s): print('d')
a=A(); a.me=a
print('end')""", {}),
    "lowatexit": (r"""import ctypes
libc=ctypes.CDLL(None)
libc.__cxa_atexit(ctypes.cast(libc.abort,ctypes.c_void_p),None,None)
print('end')""", {}),
    "pyatexit": (r"""import ctypes
ctypes.pythonapi.Py_AtExit(ctypes.cast(ctypes.CDLL(None).abort,ctypes.c_void_p))
print('end')""", {}),
    "end_default": (r"""class A:
  def __del__(s): print('d')
def f(a=A()): pass
del A
print('end')""", {}),
    "end_closure": (r"""def make():
  class A:
    def __del__(s): print('d')
  a=A()
  return lambda: a
f=make()
print('end')""", {}),
    "end_nested": (r"""x=[{'a':({1:[]},)}]
x[0]['a'][0][1].append(type('A',(),{'__del__':lambda s: print('d')})())
print('end')""", {}),
    "end_gen": (r"""def g():
  try: yield 1
  finally: print('closed')
h=[g()]
next(h[0])
print('end')""", {}),
    "end_weakref": (r"""import weakref
def f(): pass
keep=[weakref.ref(f,lambda r: print('gone'))]
print('end')""", {}),
    "end_callbacks": (r"""import gc
gc.callbacks.append(lambda phase,info: print(phase,info['generation']))
print('end')""", {}),
    "end_stats": (r"""import gc
gc.set_debug(gc.DEBUG_COLLECTABLE)
a=[]; a.append(a); del a
print('end')""", {}),
    "end_scandir": (r"""import os,warnings
warnings.simplefilter('always')
it={'a':os.scandir('/')}
next(it['a'])
print('end')""", {}),
    "end_socket": (r"""import _socket,warnings
warnings.simplefilter('always')
keep=(1,[_socket.socket()])
print('end')""", {}),
    "end_module": (r"""open('helper.py','w').write('class A:\n  def __del__(s): print("d")\na=A()\n')
import helper
print('end')""", {}),
    "end_annotated": (r"""x: type('A',(),{'__del__':lambda s: print('d')})() = 1
print('end')""", {}),
    "end_hook": (r"""import sys
sys.addaudithook(lambda event,args: print(event) if event.startswith('cpython.') else None)
print('end')""", {}),
    "end_displayhook": (r"""import sys
class A:
  def __del__(s): print('d')
sys.displayhook=A()
print('end')""", {}),
    "end_thread_local": (r"""import threading
class A:
  def __del__(s): print('d')
keep=threading.local(); keep.a=A()
print('end')""", {}),
    "end_partial": (r"""import functools
class A:
  def __del__(s): print('d')
keep=functools.partial(print,A())
print('end')""", {}),
    "end_many": (r"""class A:
  def __del__(s): print('d')
keep=[[] for i in range(5000)]; keep[2500].append(A())
print('end')""", {}),
    "on_module_file": (r"""import json,os
json.left=os.fdopen(os.dup(1),'w'); json.left.write('unflushed')""", {}),
    "on_module_gen": (r"""import json
def g():
  try: yield 1
  finally: print('closed')
json.left=g(); next(json.left)
print('end')""", {}),
    "on_sys": (r"""import sys
class A:
  def __init__(s,n): s.n=n
  def __del__(s): print(s.n)
sys.mine=A(1); sys._mine=A(2); sys.excepthook=A(3)
print('end')""", {}),
    "on_module": (r"""import json
class A:
  def __del__(s): print('d')
json.left=A()
print('end')""", {}),
}

KNOWN = {
    "json_shadow": "a preloaded module is in sys.modules already, so a file of the program's "
                   "with its name is not looked for",
    "exeopen": "/proc/self/exe is a file of the zygote's own mount: Landlock lets nobody open it, "
               "and so no cell reaches another over locks on it",
    "maps": "the zygote's module is mapped",
    "end_stats": "an interpreter that ends finds garbage of its own, which is the zygote's here",
}
# The same between two cold starts, of which one tells of its program (ADR 16).
KNOWN_COLD = {
    "proc_misc": "/proc/self/environ has NULs where the variables for the library were",
    "end_stats": "what the collector finds at the end is in another order",
}
