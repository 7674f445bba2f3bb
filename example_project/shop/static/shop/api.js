"use strict";

// A session writes only with the token against forged requests, which stands in a cookie.
function withToken(request) {
  const found = document.cookie.match(/(?:^|; )csrftoken=([^;]*)/);
  if (found && request.method !== "GET" && new URL(request.url, location).origin === location.origin) {
    request.headers["X-CSRFToken"] = decodeURIComponent(found[1]);
  }
  return request;
}

const place = document.getElementById("api");

SwaggerUIBundle({
  domNode: place,
  url: place.dataset.document,
  deepLinking: true,
  docExpansion: "list",
  requestInterceptor: withToken,
  validatorUrl: null,
});
