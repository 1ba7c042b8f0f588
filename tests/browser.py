"""Drives a headless Chromium through its DevTools protocol, over a pipe: no package is needed but
the browser.

    with Browser() as browser:
        page = browser.open('/path/page.html')
        page.run('document.title')
"""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time


def find():
    """The browser, or None."""
    for name in ('chromium', 'chromium-browser', 'google-chrome'):
        if path := shutil.which(name):
            return path
    return None


class Browser:
    def __init__(self, width=1280, height=900, arguments=()):
        self.profile = tempfile.TemporaryDirectory(prefix='sim-browser-')
        their_in, self.out = os.pipe()
        self.input, their_out = os.pipe()
        # numbers above those that the browser expects, so that neither overwrites the other
        high = [os.dup(their_in), os.dup(their_out)]
        while min(high) < 5:
            high = [os.dup(fd) for fd in high]

        def connect():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [find(), '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
             '--no-first-run', '--hide-scrollbars', '--remote-debugging-pipe',
             f'--user-data-dir={self.profile.name}',
             f'--window-size={width},{height}', *arguments, 'about:blank'],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(3, 4), preexec_fn=connect)
        for fd in [their_in, their_out, *high]:
            os.close(fd)
        self.size, self.last, self.buffer = (width, height), 0, b''

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.input)
        for _ in range(20):  # children of the browser may still write their profile
            try:
                self.profile.cleanup()
                break
            except OSError:
                time.sleep(0.2)

    def receive(self, deadline):
        while b'\0' not in self.buffer:
            ready, _, _ = select.select([self.input], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError('the browser does not answer')
            more = os.read(self.input, 1 << 20)
            if not more:
                raise RuntimeError('the browser ended')
            self.buffer += more
        message, self.buffer = self.buffer.split(b'\0', 1)
        return json.loads(message)

    def call(self, method, session=None, events=None, timeout=60, **parameters):
        """The result of a method; events that come meanwhile are appended to `events`."""
        self.last += 1
        request = {'id': self.last, 'method': method, 'params': parameters}
        if session:
            request['sessionId'] = session
        data = json.dumps(request).encode() + b'\0'
        while data:
            data = data[os.write(self.out, data):]
        deadline = time.monotonic() + timeout
        while True:
            message = self.receive(deadline)
            if message.get('id') == self.last:
                if 'error' in message:
                    raise RuntimeError(f'{method}: {message["error"]}')
                return message['result']
            if events is not None and 'method' in message:
                events.append(message)

    def open(self, path, **how):
        return Page(self, path, **how)


class Page:
    """A file that was opened; `events` has all messages of the browser since then."""

    def __init__(self, browser, path, ready='document.documentElement?.dataset.ready', dark=False,
                 timeout=60):
        self.browser, self.events = browser, []
        target = browser.call('Target.createTarget', url='about:blank')['targetId']
        self.target = target
        self.session = browser.call('Target.attachToTarget', targetId=target,
                                    flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.call(f'{domain}.enable')
        width, height = browser.size
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.call('Emulation.setEmulatedMedia', features=[
            {'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}])
        begin = time.monotonic()
        self.call('Page.navigate', url=pathlib.Path(path).resolve().as_uri())
        while not self.run(ready):
            if time.monotonic() - begin > timeout:
                raise TimeoutError(f'{path}: not ready: {self.complaints()}')
            time.sleep(0.02)
        self.opened_in = time.monotonic() - begin

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, self.events, **parameters)

    def close(self):
        if self.target:
            self.browser.call('Target.closeTarget', targetId=self.target)
            self.target = None

    def run(self, script):
        """The value of an expression, waited for where it is a promise."""
        done = self.call('Runtime.evaluate', expression=script, returnByValue=True,
                         awaitPromise=True)
        if 'exceptionDetails' in done:
            raise RuntimeError(
                done['exceptionDetails'].get('exception', {}).get('description', str(done)))
        return done['result'].get('value')

    def complaints(self):
        """Errors and warnings of the console, exceptions, and requests other than the file
        itself."""
        found = []
        for event in self.events:
            what, parameters = event['method'], event['params']
            if what == 'Runtime.exceptionThrown':
                thrown = parameters['exceptionDetails'].get('exception', {})
                found.append(thrown.get('description', 'exception'))
            elif what == 'Log.entryAdded' and parameters['entry']['level'] in ('error', 'warning'):
                found.append(parameters['entry']['text'])
            elif what == 'Runtime.consoleAPICalled' and parameters['type'] in ('error', 'warning',
                                                                               'assert'):
                found.append(str(parameters['args']))
            elif what == 'Network.requestWillBeSent':
                url = parameters['request']['url']
                if not url.startswith(('file:', 'data:', 'blob:')):
                    found.append(f'asks for {url}')
        return found

    def mouse(self, kind, x, y, **more):
        self.call('Input.dispatchMouseEvent', type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse('mousePressed', x, y, button='left', buttons=1, clickCount=1)
        self.mouse('mouseReleased', x, y, button='left', clickCount=1)

    def key(self, key):
        more = {'text': key} if len(key) == 1 else {}
        self.call('Input.dispatchKeyEvent', type='keyDown', key=key, **more)
        self.call('Input.dispatchKeyEvent', type='keyUp', key=key)

    def screenshot(self, path, full=True):
        how = {'format': 'png', 'captureBeyondViewport': full}
        if full:
            how['clip'] = {'x': 0, 'y': 0, 'scale': 1, 'width': self.run('innerWidth'),
                           'height': self.run('document.documentElement.scrollHeight')}
        data = self.call('Page.captureScreenshot', **how)
        pathlib.Path(path).write_bytes(base64.b64decode(data['data']))

    def pdf(self, path):
        data = self.call('Page.printToPDF', printBackground=True, preferCSSPageSize=True)
        pathlib.Path(path).write_bytes(base64.b64decode(data['data']))
